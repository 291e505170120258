"""Tests of what a law declares, and of a subclass that draws its own prompts."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from icl.callbacks.critical_point import CriticalPoint
from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import LinearRegression, LinearRegressionLaw, TokenLaw, TokenPrompt
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.linear_regression import linear_regression
from icl.training.estimators import make_estimator

SEEDS = (0, 1)
SIGMAS = 5.0


class UniformLaw(LinearRegressionLaw):
    """The law of covariates uniform on a cube, of the same covariance: the fourth moments are others."""

    def token_prompts(self, generators, batch):
        n = self.context_R[0]
        draws = np.stack([rng.uniform(-(3**0.5), 3**0.5, (batch, n + 1, self.dim)) for rng in generators])
        w = np.stack([rng.standard_normal((batch, self.dim)) for rng in generators])
        x_RBMD = torch.from_numpy(draws) @ self.root_RDD[:, None].mT
        w_RBD = torch.from_numpy(w) @ self.task_root_RDD.mT
        y_RBM1 = x_RBMD @ w_RBD[..., None]
        z_RBMP = torch.cat([x_RBMD, y_RBM1], dim=-1)
        query_RBP = z_RBMP[:, :, -1].clone()
        query_RBP[..., -1] = 0
        return TokenPrompt(z_RBMP[:, :, :-1], query_RBP, y_RBM1[:, :, -1, 0], self.read_out)


def law_of(cls, **task):
    law = LinearRegression(**({"dim": 2, "context": 4} | task)).law(SEEDS)
    return cls(**{field.name: getattr(law, field.name) for field in fields(LinearRegressionLaw)})


def model(path="gram", layers=1):
    family = SparseA(2, layers)
    family.load({"A": torch.eye(2).double().expand(2, layers, 2, 2) / 2})
    return LinearTransformer(family, path)


def test_a_law_with_its_own_draw_has_no_exact_risk():
    """Estimate from prompts actually drawn, with an error: by the Gaussian law's formula these weights
    cost something else."""
    gaussian, uniform = law_of(LinearRegressionLaw), law_of(UniformLaw)
    assert gaussian.exact_risk(model()) is not None and uniform.exact_risk(model()) is None
    found = CriticalPoint(model(), uniform, SEEDS, 40_000).measure(model(), 0)
    risk_R, error_R = found["risk_estimate"], found["risk_estimate_stderr"]
    assert (error_R > 0).all() and (found["gradient_norm_stderr"] > 0).all()
    prompt = uniform.token_prompts([generator(seed, "check") for seed in SEEDS], 100_000)
    loss_RB = (model().predict(prompt) - prompt.target_RB).square()
    stderr_R = (loss_RB.var(-1) / loss_RB.shape[1] + error_R**2).sqrt()
    assert ((risk_R - loss_RB.mean(-1)).abs() < SIGMAS * stderr_R).all()
    wrong_R = gaussian.exact_risk(model())(model())
    told_apart = (wrong_R - loss_RB.mean(-1)).abs() > SIGMAS * stderr_R
    assert told_apart.all(), "the test could not tell them apart"


@pytest.mark.parametrize("path", ["gram", "tokens"])
def test_what_it_cannot_do_names_what_it_can(path):
    uniform = law_of(UniformLaw)
    assert list(uniform.estimators(model(path))) == ["sampled"]
    for name in ("expected", "population"):
        with pytest.raises(InputError, match=r"use train\.estimator=sampled"):
            make_estimator(name, model(path), uniform)
    for name in ("label_root_REK", "query_root_RED", "risk_arguments", "covariate_grams"):
        with pytest.raises(InputError, match=f"UniformLaw.{name}: UniformLaw draws its own prompts"):
            getattr(uniform, name)
    with pytest.raises(InputError, match=r"Theorem 1 takes icl\.tasks\.LinearRegression with its Gaussian"):
        linear_regression(uniform, "Theorem 1")


def test_its_runs_observe_distances_but_no_risk_on_s():
    inverse = {"task_covariance": "inverse"}
    gaussian, uniform = law_of(LinearRegressionLaw, **inverse), law_of(UniformLaw, **inverse)
    assert "dist_plain_A0" in uniform.observe(model()).names() == gaussian.observe(model()).names()
    assert risk_on_s(model(), gaussian) is not None and risk_on_s(model(), uniform) is None


def test_what_still_holds_is_declared_again():
    class Declares(UniformLaw):
        declared = ("exact_risk", "risk_arguments")
        exact_risk, risk_arguments = LinearRegressionLaw.exact_risk, LinearRegressionLaw.risk_arguments

    class DeclaresAll(LinearRegressionLaw):
        declared = LinearRegressionLaw.declared

        def token_prompts(self, generators, batch):
            return super().token_prompts(generators, batch)

    assert law_of(Declares).exact_risk(model()) is not None
    assert "expected" not in law_of(Declares).estimators(model())
    assert "expected" in law_of(DeclaresAll).estimators(model())
    assert linear_regression(law_of(DeclaresAll), "x").dim == 2


def test_a_subclass_that_draws_as_before_keeps_everything():
    class Named(LinearRegressionLaw):
        def arrays(self):
            return {}

        def said(self):
            return "more"

    assert law_of(Named).exact_risk(model()) is not None and Named.declared == LinearRegressionLaw.declared


class HeavyTasks:
    """A mixin that changes a helper of every draw."""

    def _query_and_task(self, generators, batch):
        query_RBP, target_RB, w_RBD = super()._query_and_task(generators, batch)
        return query_RBP, target_RB**3, w_RBD


def test_any_change_of_what_is_drawn_counts():
    class Mixed(HeavyTasks, LinearRegressionLaw):
        pass

    class OtherCovariance(LinearRegressionLaw):
        @property
        def u_root_REE(self):
            return 2 * self.root_RDD

    class Grandchild(UniformLaw):
        pass

    for cls in (Mixed, OtherCovariance, Grandchild):
        assert cls.declared == () and law_of(cls).exact_risk(model()) is None, cls


def test_a_shortcut_alone_cannot_be_another_law():
    with pytest.raises(TypeError, match="Shortcut changes covariate_grams but not token_prompts"):

        class Shortcut(LinearRegressionLaw):
            def covariate_grams(self, generators, batch):
                return 2 * super().covariate_grams(generators, batch)


def test_tokens_need_one_length():
    message = r"task\.context: must be one length for all seeds where UniformLaw draws"
    with pytest.raises(InputError, match=message):
        replace(law_of(UniformLaw), context_R=(4, 7)).estimators(model())


def test_a_law_from_nothing_but_its_tokens():
    class Constant(TokenLaw):
        dim, context_R = 1, (3,)

        def replica(self, r):
            return self

        def token_prompts(self, generators, batch):
            one = torch.ones(1, batch, 4, 2, dtype=torch.float64)
            return TokenPrompt(one[:, :, :3], one[:, :, 3], one[:, :, 0, 0], 1)

    law = Constant()
    assert law.exact_risk(model()) is None and list(law.observe(model()).names()) == []
    assert law.exact_where == "Constant declares none" and law.arrays() == {}
    draw = make_estimator("sampled", model(), law).draw([np.random.default_rng(0)], 5)
    assert float(draw["target"].sum()) == 5
