"""Tests of Figures 1 to 6 and the comparison: the runs they request, and the numbers computed from them."""

from typing import Any

import numpy as np
import pytest
import torch

from icl.algorithms import GradientDescent
from icl.checks.lds.support.eq14 import constant
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.experiments.lds import extra
from icl.experiments.lds.extra import Extra
from icl.experiments.lds.protocol import ProtocolSize
from icl.experiments.lds.weights import Weights, best_step, effective_weight, exact_risk, measure_weights
from icl.jobs.requests.train import parse as train_request
from icl.models import Full, LinearTransformer
from icl.random import generator
from icl.tasks.dynamical_system import gram_prompts
from icl.theory.dynamical_system import covariances_of_independent_modes, moments
from tests.records import FakeRunner, mark, record

SIZE = {"dim": 2, "length": 8, "seeds": [0, 4], "steps": 40, "systems": 20}


def run_of(window, steps=3):
    """Return random weights of two seeds at some steps."""
    rng = np.random.default_rng(window)
    shape = (2, steps, 1, window + 1, window + 1)
    P, Q = rng.standard_normal(shape), rng.standard_normal(shape)
    return record(
        run=mark(f"f{window}", [0, 4]),
        weights={"P_history": P, "Q_history": Q, "history_steps": np.arange(steps)},
    )


class FakeRunner(FakeRunner):
    """A runner that finds again what it has stored."""

    def __init__(self):
        super().__init__(lambda experiment, overrides: run_of(overrides["task.window"]))
        self.stored: dict[str, Any] = {}

    def store(self, name, science, *given):
        key = f"{name} {science}"
        if key not in self.stored:
            self.stored[key] = super().store(f"s{len(self.stored)}", science, *given)
        return self.stored[key]


def composed(runner, *more):
    """Compose the one run that was requested from `runner`."""
    ((experiment, asked),) = runner.asked
    overrides = [f"{key}={'null' if value is None else value}" for key, value in asked.items()]
    return compose(ConfigDirs(), "train", [f"experiment={experiment}", *overrides, *more])


def test_figures_of_one_setting_share_runs_and_optima():
    runner = FakeRunner()
    first = Weights("a", [1, 2], **SIZE).records(runner)
    count = len(runner.stored)
    again = Weights("a", [2], **SIZE).records(runner)
    assert len(runner.stored) == count and again["AR2_optimum"] is first["AR2_optimum"]
    assert set(first) == {f"AR{s}{part}" for s in (1, 2) for part in ("", "_exact", "_optimum")}
    Extra(settings=["a"], windows=[1, 2], sequences=10, **SIZE).records(runner)
    assert len(runner.stored) == count + 1, "the comparison adds its own arrays only"


def test_runs_follow_the_tables(tmp_path):
    """Compose what is requested; AR(3) in (a) and (c), whose tables differ."""
    session = Session(tmp_path)
    for setting, lr, betas, low, pool in (
        ("a", 9e-2, [0.1, 0.55], 1e-4, None),
        ("c", 7e-3, [0.92, 0.96], 1e-5, 20),
    ):
        runner = FakeRunner()
        ProtocolSize(setting, **SIZE).train(runner, 3)
        made = composed(runner, "scale=laptop")
        train_request(made, session).validate()
        settings = made.settings
        assert settings["optimizer"]["lr"] == lr and list(settings["optimizer"]["betas"]) == betas
        assert settings["optimizer"]["schedule"]["min_lr"] == low and settings["task"]["systems"] == pool
        assert settings["train"]["estimator"] == "population" and settings["train"]["batch"] is None


def test_fresh_runs_draw_batches_of_the_tables():
    runner = FakeRunner()
    ProtocolSize("d", fresh=True, **SIZE).train(runner, 4)
    for scale in ("smoke", "laptop", "paper"):
        settings = composed(runner, f"scale={scale}").settings
        train = settings["train"]
        assert (train["estimator"], train["batch"], train["steps_per_batch"]) == ("sampled", 16_000, 1)
        assert settings["task"]["systems"] is None


def test_judged_is_the_exact_risk_and_the_weights_of_the_end():
    size, window = ProtocolSize("a", **SIZE), 2
    run = run_of(window)
    found = measure_weights(run, size, window)
    law = size.law(window)
    for s in range(3):
        family = Full(window, layers=1)
        family.load({name: torch.from_numpy(run.weights[f"{name}_history"][:, s]) for name in "PQ"})
        model = LinearTransformer(family)
        risk = law.exact_risk(model)
        assert risk is not None
        np.testing.assert_allclose(found["risk_RS"][:, s], risk(model).detach().numpy(), rtol=1e-12)
    # The head in the gauge predicts what the layer does.
    y = law.sequences([generator(3, "eval")], 20).expand(2, -1, -1)
    prompt = gram_prompts(y, window)
    layer = model.predict(prompt).detach().numpy()
    given = prompt.gram_RBPP[1], prompt.query_RBP[1, :, :window]
    heads = extra.head(found["b_RP"][1], found["a_RKP"][1], *given)
    np.testing.assert_allclose(heads.numpy(), layer[1], rtol=1e-10)


def test_each_seed_has_the_minimum_that_its_weights_descend_to():
    """Start near the best head of (13), and near its mirror: the entries outside vanish in both."""
    size = ProtocolSize("a", **SIZE)
    optimum = Weights("a", [1], **SIZE).records(FakeRunner())["AR1_optimum"].weights
    b, a = optimum["b_P"] + [0.02, 0.05], optimum["a_KP"] + [[0.03, -0.04]]
    P, Q = np.zeros((2, 2, 1, 1, 2, 2))
    P[0, 0, 0, -1], Q[0, 0, 0, :, 0] = 2 * b, a[0] / 2
    P[1, 0, 0, -1], Q[1, 0, 0, :, 0] = a[0], b
    arrays = {"P_history": P, "Q_history": Q, "history_steps": np.zeros(1)}
    found = measure_weights(record(run=mark("f", [0, 4]), weights=arrays), size, 1)
    assert found["minimum_reached_R"].all() and (found["minimum_curvature_R"] > 1e-4).all()
    np.testing.assert_allclose(found["minimum_risk_R"], optimum["value"], rtol=1e-12)
    assert (found["outside_R"] > 0.01).all() and (found["minimum_outside_R"] < 1e-10).all()
    assert found["minimum_V_R"].tolist() == found["minimum_QK_R"].tolist() == [0, 1], "as they are"
    (least, most), (low, high) = found["minimum_scales_R2"]
    assert least < 1 < most and low > high


def test_the_best_step_is_the_best_and_one_gradient_step():
    size, window = ProtocolSize("b", **SIZE), 2
    risk = exact_risk(size, window)
    eta, value = best_step(risk, window)
    b, a = torch.tensor([[0.0, 0, 1]]).double(), torch.zeros(1, 3, 3).double()
    a[0, :2, :2] = torch.eye(2)
    assert value == pytest.approx(float(risk.value_of_heads(b, eta * a)), rel=1e-10)
    for other in (0.99 * eta, 1.01 * eta):
        assert float(risk.value_of_heads(b, other * a)) > value
    y = size.law(window).sequences([generator(1, "eval")], 30)
    prompt = gram_prompts(y, window)
    step = GradientDescent(eta, 1).predict(prompt)[0]
    mine = extra.head(b[0].numpy(), (eta * a)[0, :2].numpy(), prompt.gram_RBPP[0], prompt.query_RBP[0, :, :2])
    torch.testing.assert_close(mine, step)


def test_at_one_window_the_best_step_is_the_constant_of_14():
    """Compute the step from its moments, and from the best head, whose mirror predicts the same."""
    size = ProtocolSize("a", **SIZE)
    law = size.law(1)
    found = moments(covariances_of_independent_modes(**law.mode_arguments()), 1)
    eta, _ = best_step(exact_risk(size, 1), 1)
    assert eta == pytest.approx(constant(found), rel=1e-10)
    optimum = Weights("a", [1], **SIZE).records(FakeRunner())["AR1_optimum"].weights
    assert effective_weight(optimum["b_P"], optimum["a_KP"]) == pytest.approx(eta, rel=1e-6)
    assert optimum["step"] == pytest.approx(eta, rel=1e-12)


def test_comparison():
    """Compare paired losses: the mean of each method equals its difference to the Kalman filter's."""
    records = Extra(settings=["a"], windows=[1, 2], sequences=400, **SIZE).records(FakeRunner())
    test = records["a_test"].weights
    for name in ("step", "pcg", "least_squares", "optimum", "trained"):
        difference = test[f"{name}_W"] - test["kalman_W"]
        np.testing.assert_allclose(difference, test[f"{name}_above_W"], rtol=1e-9)
    assert test["trained_W"].shape == (2, 2) and (test["step_above_W"] > 0).all()
    np.testing.assert_allclose(test["pcg_W"][0], test["least_squares_W"][0])
    error = 4.5 * test["step_stderr_W"]
    assert (np.abs(test["step_W"] - test["step_exact_W"]) < error).all()


def test_at_the_optimum_no_other_head_is_better():
    size = ProtocolSize("c", **SIZE)
    runner = FakeRunner()
    optimum = Weights("c", [2], **SIZE).records(runner)["AR2_optimum"].weights
    risk = exact_risk(size, 2)
    rng = np.random.default_rng(0)
    b, a = torch.from_numpy(optimum["b_P"]), torch.zeros(3, 3).double()
    a[:2] = torch.from_numpy(optimum["a_KP"])
    value = float(risk.value_of_heads(b[None], a[None]))
    assert value == pytest.approx(float(optimum["value"]), rel=1e-9)
    assert optimum["any_heads"] <= value <= optimum["pattern_value"] + 1e-12
    for _ in range(20):
        shift = torch.from_numpy(0.01 * rng.standard_normal(3))
        assert float(risk.value_of_heads((b + shift)[None], a[None])) >= value * (1 - 1e-9)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_experiments_train_at_paper_scale_as_the_figures_do(window):
    runner, name = FakeRunner(), "lds/ar" if window == 1 else f"lds/ar{window}"
    ProtocolSize("a", 5, 30, [666013, 1, 0], 8001, 2000, fresh=True).train(runner, window)
    of_figure = composed(runner, "scale=paper").settings
    own = compose(ConfigDirs(), "train", [f"experiment={name}", "scale=paper"]).settings
    for part in ("task", "optimizer", "train", "trainer"):
        for settings in (own, of_figure):
            settings[part].pop("log_every", None)
        assert own[part] == of_figure[part]
    assert own["seeds"] == of_figure["seeds"]
    assert own["model"]["init_std"] == pytest.approx(of_figure["model"]["init_std"], rel=1e-3)
