"""Tests of the exact levels, the excess and the Hessian's least eigenvalue, which loggers get."""

import numpy as np
import pytest
import torch
from flint import fmpq

from icl.callbacks.ahn import Levels
from icl.levels.ahn import Exact, least_of, saddles_of
from icl.models import LinearTransformer, SparseA, SparseAB
from icl.models.parametrizations import Full, MultiHead
from icl.tasks import DynamicalSystem, LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.lds.layer import Layer
from icl.theory.lds.systems import Noise, independent_modes
from icl.theory.looped.equal_steps import EqualSteps

WHITE = {"dim": 2, "context": 20, "task_covariance": "inverse"}
D5 = {"dim": 5, "context": 20, "task_covariance": "inverse"}
THREE = {"level/null", "level/saddle_1", "level/saddle_2", "level/optimum"}
TWO = {"level/null", "level/optimum"}


def exact(family, task):
    law = LinearRegression(**task).law([0, 1])
    model = LinearTransformer(family)
    family.initialise([0, 1])
    return Exact(model.on(family.double()), law), model, law


@pytest.mark.parametrize(
    ("family", "task", "levels", "more"),
    [
        (SparseA(5, 3), D5, THREE, {"excess", "hessian/least"}),
        (SparseA(5, 4), D5, THREE | {"level/saddle_3"}, {"hessian/least"}),  # no exact risk off S
        (SparseAB(2, 2), WHITE, {"level/null"}, {"hessian/least"}),
        (SparseAB(5, 3), D5, {"level/null"}, {"hessian/least"}),
        (Full(5, 1), D5, TWO, {"excess"}),
        (SparseA(5, 1), D5, TWO, {"excess", "hessian/least"}),
        (MultiHead(3, 1, heads=4), {"dim": 3, "context": 5, "prior_mean_norm": 1.0}, TWO, {"excess"}),
        (MultiHead(3, 1, heads=1), {"dim": 3, "context": 5, "prior_mean_norm": 1.0}, {"level/null"}, set()),
        (SparseA(2, 2, shared=True), WHITE, {"level/null", "level/saddle_1"}, {"hessian/least"}),
        (SparseA(2, 2, shared=True), WHITE | {"context": 14}, {"level/null"}, {"hessian/least"}),
        (SparseA(3, 2), {"dim": 3, "tasks": 4, "task_covariance": "inverse"}, {"level/null"}, set()),
        (SparseA(5, 4), {"dim": 5, "label_noise": 0.1}, set(), set()),
    ],
)  # fmt: skip
def test_what_no_theorem_gives_is_absent(family, task, levels, more):
    of, model, _ = exact(family, task)
    assert (set(of.levels), set(of.at(model))) == (levels, levels | more)
    order = ("level/optimum", *(f"level/saddle_{k}" for k in (3, 2, 1)), "level/null")
    rising = [of.levels[name] for name in order if name in levels]
    assert rising == sorted(set(rising)) and all(rising)


def at_steps(family, law, steps):
    """Return a model at A_l = a_l Sigma^-1."""
    inverse_RDD = torch.linalg.inv(law.Sigma_RDD)
    A_RLDD = torch.tensor(steps, dtype=torch.float64)[None, :, None, None] * inverse_RDD[:, None]
    return LinearTransformer(family.sharing([A_RLDD.requires_grad_()]))


@pytest.mark.parametrize("point", ["optimum", "saddle"])
def test_the_hessian_tells_a_saddle_from_the_optimum_and_the_gradient_does_not(point):
    """Second derivatives along S of the exact risk of the weights are the second route."""
    of, _, law = exact(SparseA(5, 3), D5)
    optimum, equal = InvariantRisk(5, 20, 3).optimum(), EqualSteps(5, 20, 3)
    steps = optimum.a_L.tolist() if point == "optimum" else [equal.best] * 3
    model = at_steps(SparseA(5, 3), law, steps)
    (A_RLDD,) = model.parametrization.matrices().values()
    (gradient,) = torch.autograd.grad(of.risk(model).sum(), [A_RLDD])
    assert gradient.abs().max() < 1e-8

    def along_s(a_L):
        A = a_L[None, :, None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]
        return of.risk(model.on(SparseA(5, 3).sharing([A])))[0]

    hessian_LL = torch.autograd.functional.hessian(along_s, torch.tensor(steps, dtype=torch.float64))
    found = of.at(model)
    assert found["hessian/least"] == pytest.approx(float(torch.linalg.eigvalsh(hessian_LL)[0]))
    assert (found["hessian/least"] > 0) == (point == "optimum")
    level = found["level/optimum" if point == "optimum" else "level/saddle_1"]
    assert float(of.risk(model).mean().detach()) == pytest.approx(level)
    assert found["excess"] == pytest.approx(level / optimum.risk - 1, abs=1e-9)
    assert of.at(model, [level])["excess"] == pytest.approx(found["excess"], abs=1e-9)
    assert "excess" not in of.at(model, [])
    assert [a for a, _ in of.layers(model)[0]] == pytest.approx(sorted(steps))
    assert [a for _, a in of.layers(model)[0]] == pytest.approx(optimum.a_L.tolist())


@pytest.mark.parametrize("size", [(5, 20, 3), (2, 20, 4), (5, 1, 2), (10, 3, 4)])
def test_the_best_equal_step_is_that_of_the_rationals(size):
    equal = EqualSteps(*size)
    (a,), risk = least_of(InvariantRisk(*size), [size[2]])
    assert (a, risk) == pytest.approx((equal.best, equal.least_risk), rel=1e-9)


@pytest.mark.parametrize("sizes", [[1, 2], [2, 1], [2, 2], [1, 1, 2]])
def test_layers_that_share_scalars_are_at_a_saddle(sizes):
    on_s = InvariantRisk(5, 20, sum(sizes))
    a_K, risk = least_of(on_s, sizes)
    found = on_s.derivatives(np.repeat(a_K, sizes))
    assert found.value == pytest.approx(risk) and np.abs(found.gradient_V).max() < 5e-9
    least = np.linalg.eigvalsh(found.hessian_VV)[0]
    assert least < 0 and saddles_of(on_s)[len(sizes) - 1] <= risk * (1 + 1e-9)


@pytest.mark.parametrize(("window", "known"), [(1, True), (2, False)])
def test_on_ar_1_tokens_one_head_attains_the_least_risk(window, known):
    law = DynamicalSystem(dim=2, length=8, window=window, setting="a").law([0])
    of = Exact(LinearTransformer(Full(window, 1)), law)
    assert ("level/optimum" in of.levels) == known
    if known:  # the rationals of the theorem are the second route
        layer = Layer(independent_modes("a", 2, 8, Noise(*[fmpq(1, 100)] * 3)), 1)
        assert of.levels["level/optimum"] == pytest.approx(float(layer.least()), rel=1e-12)


def test_levels_are_computed_once_for_a_law():
    _, model, law = exact(SparseA(2, 2), WHITE)
    callback = Levels()
    assert callback.exact(model, law) is callback.exact(model, law)
