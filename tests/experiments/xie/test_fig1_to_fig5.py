"""Tests of the experiments behind Figures 1 to 5: the runs they request, and the numbers computed from
them.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from icl.config.compose import compose
from icl.config.objects import instantiate
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.constructions.xie.initial_guess import one_step_gd
from icl.experiments.xie import fig5
from icl.experiments.xie.fig1 import Fig1
from icl.experiments.xie.fig2 import Fig2
from icl.experiments.xie.fig3 import Fig3
from icl.experiments.xie.fig4 import Fig4
from icl.experiments.xie.fig5 import Fig5
from icl.experiments.xie.runs import RunSize, risks
from icl.figures.items import metric
from icl.jobs.requests.figure import FigureRunner
from icl.jobs.requests.train import parse as train_request
from icl.models import LinearTransformer, YqLSA
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gd_risk, lost_slope
from tests.records import FakeRunner, mark, record

SIZE = {"dim": 3, "context": 5, "seeds": [0, 4]}
SHORT = {"minibatch_steps": 6, "minibatch_size": 32}
FIG1 = SIZE | {"squared_norms": [4, 0]}
FIG2 = SIZE | SHORT | {"heads": [4, 1, 3], "squared_norm": 4, "minibatch_heads": [1]}
FIG3 = SIZE | SHORT | {"heads": 4, "squared_norms": [0, 4.0], "minibatch_squared_norms": [4]}
FIG4 = SIZE | {"heads": 4, "squared_norms": [0, 4], "squared_biases": [0, 1]}
FIG5 = SIZE | SHORT | {"squared_norms": [0, 4], "minibatch_squared_norms": [4]}
FIG5 |= {"alignment_squared_norm": 4, "prompts": 4000}


def asked(figure):
    """Return the runs that a figure requests."""
    runner = FakeRunner(lambda experiment, overrides: record(run=mark(overrides)))
    runner.store = lambda name, *given: name
    figure.records(runner)
    return runner.asked


def test_figures_share_their_runs():
    by_heads = asked(Fig2(**FIG2))
    by_prior = asked(Fig3(**FIG3))
    by_guess = asked(Fig4(**FIG4))
    gap, aligned = asked(Fig1(**FIG1)), asked(Fig5(**FIG5))
    assert by_heads[2] == by_prior[1]  # four heads, |w*|^2 = 4, on the population risk
    assert by_heads[0] == gap[1]  # one head
    assert by_guess[0] == by_guess[2] == by_prior[0]  # no guess is no guess, whichever is varied
    assert [run for run in aligned if run in gap] == [*gap[2:], gap[3]]  # y_q-LSA, and again for panel (b)


def test_a_figures_run_is_that_of_the_experiment():
    """Find with `icl train experiment=xie/heads` what Figures 2 and 3 trained, and the other way round."""
    for scale, dim in (("laptop", 10), ("paper", 10)):
        size = RunSize(dim, 10, [0, 1, 2] if scale == "laptop" else [0, 1, 2, 3, 4])
        chosen = [f"scale={scale}", "logger=none"]
        overrides = size._overrides(prior=10.0) | {"model.heads": 11}
        settings = [f"{key}={value}" for key, value in overrides.items()]
        assert identity(*chosen, *settings) == identity(*chosen)


def identity(*overrides):
    composed = compose(ConfigDirs(), "train", ["experiment=xie/heads", *overrides])
    return train_request(composed, Session(Path("/nowhere"))).identity


def test_settings_are_squares_and_runs_take_their_roots():
    """Compare with the exact risk of the same prompts: gaps of 2 (|w* - v|^2 + b^2) / (dC + 2)."""
    size = RunSize(3, 5, [0])
    overrides = size._overrides(prior=4.0, guess=9.0, bias=16.0)
    names = ("prior_mean_norm", "guess_vector_norm", "guess_bias")
    assert [overrides[f"task.{name}"] for name in names] == [2.0, 3.0, 4.0]
    every = {"prior": 4.0, "guess": 9.0, "bias": 16.0}
    for squares, error in (({"prior": 4.0}, 4), ({"guess": 9.0}, 9), ({"bias": 16.0}, 16), (every, 1 + 16)):
        least = size.risk(**squares).convex_bound().value
        assert least == pytest.approx(gd_risk(3, 5) + 2 * error / 17, rel=1e-10)


@pytest.mark.parametrize("name", ["heads", "yq_lsa"])
def test_covariates_are_white_at_any_dim(name):
    """Set dim 5, whose default is ahn's Sigma: the exact lines would not be those of the runs."""
    settings = [f"{key}={value}" for key, value in RunSize(5, 5, [0])._overrides(prior=1.0).items()]
    composed = compose(ConfigDirs(), "train", [f"experiment=xie/{name}", "scale=laptop", *settings])
    law = instantiate("task", composed.settings["task"]).law([0])
    assert torch.equal(law.Sigma_RDD[0], torch.eye(5, dtype=torch.float64)) and law.read_out == 1


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Return records of small figures, trained at smoke as by the command line."""
    outputs = tmp_path_factory.mktemp("outputs")
    runner = FigureRunner("smoke", Session(outputs))
    figures = {"fig1": Fig1(**FIG1), "fig2": Fig2(**FIG2), "fig4": Fig4(**FIG4), "fig5": Fig5(**FIG5)}
    return {name: figure.records(runner) for name, figure in figures.items()}


def test_risks_are_exact_however_a_run_was_trained(records):
    run = records["fig2"]["H3"]
    steps_T, loss_ST = metric(run, "loss")
    shared, at_T, at_S = np.intersect1d(steps_T, run.weights["history_steps"], return_indices=True)
    assert {0, 40} <= set(shared.tolist())
    np.testing.assert_allclose(risks(run)[:, at_S], loss_ST[:, at_T], rtol=1e-12)
    short = records["fig2"]["minibatch_H1"]
    _, exact_ST = metric(short, "exact_risk")
    np.testing.assert_allclose(risks(short)[:, -1], exact_ST[:, -1], rtol=1e-12)
    assert np.abs(metric(short, "loss")[1][:, 0] / risks(short)[:, 0] - 1).max() > 1e-2  # a batch of 32


def test_what_is_stored_for_the_heads(records):
    exact = records["fig2"]["exact"].weights
    assert exact["heads_X"].tolist() == [1, 3, 4]
    assert exact["risk_XRS"].shape == (3, 2, len(exact["steps_S"]))
    assert exact["minibatch_risk_XRS"].shape == (1, 2, len(exact["minibatch_steps_S"]))
    np.testing.assert_allclose(exact["best_X"][1:], exact["any_heads"], rtol=1e-10)
    assert exact["any_heads"] < exact["certified_X"][0] < exact["best_X"][0]
    assert (exact["risk_XRS"] >= exact["certified_X"][:, None, None] - 1e-12).all()


def test_the_exact_lines_are_the_closed_forms(records):
    gd, slope = 3 * 4 / (5 + 4), 2 / (3 * 5 + 2)
    gap, guesses, heads = (records[name]["exact"].weights for name in ("fig1", "fig4", "fig2"))
    assert gap["norm_G"][[0, -1]].tolist() == [0, 2]
    np.testing.assert_allclose(gap["any_heads_G"], gd + slope * gap["norm_G"] ** 2, rtol=1e-12)
    np.testing.assert_allclose(gap["one_head_X"], gap["one_head_G"][[0, -1]], rtol=1e-6)
    assert gap["gd"] == guesses["gd"] == pytest.approx(gd) and guesses["slope"] == pytest.approx(slope)
    for kind in ("vector", "bias"):
        line_X = gd + slope * guesses[f"{kind}_squared_X"]
        np.testing.assert_allclose(guesses[f"{kind}_any_heads_X"], line_X, rtol=1e-10)
    np.testing.assert_allclose(heads["any_heads"], gd + 4 * slope, rtol=1e-10)
    np.testing.assert_allclose(heads["certified_X"][0], gd + 4 * slope + 4 * lost_slope(3, 5, 1), rtol=1e-10)


def test_alignment_is_measured_on_prompts_of_the_evaluation(records, monkeypatch):
    roles = []

    def recorded(seed, role, step=0):
        roles.append(role)
        return generator(seed, role, step)

    monkeypatch.setattr(fig5, "generator", recorded)
    fig5.alignment_of(records["fig5"]["aligned"], 2)
    assert set(roles) == {"eval"}


def test_the_excess_is_the_mean_square_of_the_gradients_difference(records):
    """Compare the exact risk of trained weights with sampled prompts, by way of one GD step."""
    aligned, gd = records["fig5"]["alignment"].weights, gd_risk(3, 5)
    for name in ("prediction", "gradient"):
        off_RS = np.abs(aligned[f"{name}_square_RS"] - (aligned["risk_RS"] - gd))
        assert (off_RS < 5 * aligned[f"{name}_stderr_RS"]).all()
        assert (aligned[f"{name}_stderr_RS"] < 0.1 * aligned[f"{name}_square_RS"]).all()
    assert aligned["cosine_SQ"].shape == (len(aligned["steps_S"]), 3)
    assert (np.diff(aligned["prediction_SQ"], axis=1) > 0).all()


def descent_model(w_star_D, context):
    """Return eq. (7) with v = w*."""
    P_PP, Q_PP = one_step_gd(w_star_D, isotropic_step(len(w_star_D), context))
    family = YqLSA(len(w_star_D), 1)
    family.load({"P": P_PP[None, None], "Q": Q_PP[None, None], "v": w_star_D[None, None, None]})
    return LinearTransformer(family.requires_grad_(False))


def test_the_gradients_of_eq_7_are_those_of_one_step():
    """Compute the same step in two ways, and on tokens as a third."""
    law = LinearRegression(3, 5, rotation="none", prior_mean=[1.0, -2.0, 0.5], read_out=1).law([7])
    tokens = law.token_prompts([generator(7, "eval")], 6)
    step_RBD = fig5.descent_gradients(tokens.gram().gram_RBPP, law.mean_RD, 5)
    model_RBD = fig5.input_gradients(descent_model(law.mean_RD[0], 5), tokens.gram().gram_RBPP)
    torch.testing.assert_close(step_RBD, model_RBD, rtol=1e-12, atol=1e-12)
    x_BND, y_BN = tokens.context_RBNP[0, :, :, :3], tokens.context_RBNP[0, :, :, 3]
    eta = 5 / (5 + 3 + 1)
    for x_ND, y_N, step_D in zip(x_BND, y_BN, step_RBD[0], strict=True):
        by_hand = law.mean_RD[0] + eta / 5 * ((y_N - x_ND @ law.mean_RD[0])[:, None] * x_ND).sum(0)
        torch.testing.assert_close(step_D, by_hand)


def test_input_gradients_are_what_autograd_finds():
    law = LinearRegression(3, 5, rotation="none", prior_mean_norm=1.0, read_out=1).law([7, 8])
    family = YqLSA(3, 1, init_std=0.5)
    family.initialise([7, 8])
    model = LinearTransformer(family.requires_grad_(False))
    prompt = law.gram_prompts([generator(seed, "eval") for seed in (7, 8)], 4)
    query_RBP = prompt.query_RBP.clone().requires_grad_()
    moved = type(prompt)(prompt.gram_RBPP, query_RBP, prompt.target_RB, 1)
    (grad_RBP,) = torch.autograd.grad(model.predict(moved).sum(), query_RBP)
    torch.testing.assert_close(fig5.input_gradients(model, prompt.gram_RBPP), grad_RBP[..., :3])


def test_no_minibatch_runs_are_asked_for_where_none_are_named():
    runs = asked(Fig2(**FIG2 | {"minibatch_heads": []}))
    assert len(runs) == 3 and not any("train.batch" in overrides for _, overrides in runs)
