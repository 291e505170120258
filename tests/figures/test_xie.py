"""Tests of xie's figures: claims on training that ended where theory says, or not; what they compute."""

from pathlib import Path

import numpy as np
import pytest
import torch

from icl.config.compose import compose
from icl.config.objects import instantiate
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.figures.arrays import metric
from icl.figures.xie.fig1 import Fig1
from icl.figures.xie.fig2 import Fig2
from icl.figures.xie.fig3 import Fig3
from icl.figures.xie.fig4 import Fig4
from icl.figures.xie.fig5 import Fig5, descent_gradients, input_gradients
from icl.figures.xie.runs import risks
from icl.jobs.requests.figure import FigureRunner
from icl.jobs.requests.train import parse as train_request
from icl.models import LinearTransformer, YqLSA
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gap_slope, gd_risk, lost_slope
from tests.figures.drawn import unbuilt
from tests.records import FakeRunner, mark, record

DIM, CONTEXT, PRIOR = 4, 6, 9.0
GD, SLOPE = gd_risk(DIM, CONTEXT), gap_slope(DIM, CONTEXT)
STEPS = np.array([0, 1, 10, 100])
SQUARED = np.array([0.0, 2.0, 9.0])


def records(arrays):
    return {
        part: record(weights={key: np.asarray(value) for key, value in given.items()})
        for part, given in arrays.items()
    }


def training(final_XR, begin=20.0):
    """Return two seeds that fall from `begin` to the final risks, (X, R, S)."""
    return final_XR[..., None] + (begin - final_XR[..., None]) * np.array([1, 0.5, 0.1, 0])


def both(value_X, excess=1e-6):
    return np.stack([value_X, value_X * (1 + excess)], axis=1)


def fig1():
    norm_G = np.linspace(0, 3, 7)
    one_head_X, one_head_G = (GD + 0.3 * squared for squared in (SQUARED, norm_G**2))
    return {"exact": {
        "squared_X": SQUARED, "lsa_XR": both(one_head_X), "yq_lsa_XR": both(np.full(3, GD)), "gd": GD,
        "one_head_X": one_head_X, "norm_G": norm_G, "one_head_G": one_head_G,
        "any_heads_G": GD + SLOPE * norm_G**2,
    }}  # fmt: skip


def fig2():
    heads_X = np.arange(1, DIM + 4)
    least = GD + SLOPE * PRIOR
    certified_X = least + PRIOR * np.array([lost_slope(DIM, CONTEXT, h) for h in heads_X])
    # a little above the certified bound, and below that of one head less
    best_X = np.where(heads_X < DIM, 0.9 * certified_X + 0.1 * np.roll(certified_X, 1), least)
    best_X[0] = 1.1 * certified_X[0]
    return {"exact": {
        "dim": DIM, "heads_X": heads_X, "steps_S": STEPS, "risk_XRS": training(both(best_X)),
        "best_X": best_X, "certified_X": certified_X, "any_heads": least, "rounding": 1e-12, "gd": GD,
        "minibatch_heads_X": np.array([2]), "minibatch_steps_S": STEPS[:3],
        "minibatch_risk_XRS": training(both(best_X[1:2], 0.02))[..., [0, 1, 3]],
    }}  # fmt: skip


def fig3():
    least_X = GD + SLOPE * SQUARED
    return {"exact": {
        "heads": DIM + 1, "squared_X": SQUARED, "steps_S": STEPS, "any_heads_X": least_X,
        "risk_XRS": training(both(least_X)), "gd": GD, "slope": SLOPE, "minibatch_squared_X": np.array([]),
    }}  # fmt: skip


def fig4():
    least_X = GD + SLOPE * SQUARED
    exact = {"heads": DIM + 1, "gd": GD, "slope": SLOPE}
    for kind in ("vector", "bias"):
        given = {"squared_X": SQUARED, "risk_XR": both(least_X), "any_heads_X": least_X}
        exact |= {f"{kind}_{name}": array for name, array in given.items()}
    return {"exact": exact}


def fig5():
    risk_XRS = training(both(np.full(3, GD)))
    excess_RS = risk_XRS[-1] - GD
    quantile_SQ = np.sqrt(excess_RS.mean(0))[:, None] * np.array([0.5, 1, 2])
    alignment = {
        "steps_S": STEPS, "squared": 9.0, "cosine_mean_RS": 1 - 0.05 * excess_RS / excess_RS.max(),
        "cosine_SQ": np.array([[-0.5, 0.0, 0.5], [0.7, 0.8, 0.9], [0.95, 0.96, 0.97], [1, 1, 1]]),
    }  # fmt: skip
    for name in ("prediction", "gradient"):
        alignment |= {f"{name}_SQ": quantile_SQ, f"{name}_square_RS": 1.01 * excess_RS}
        alignment |= {f"descent_{name}_R": np.full(2, 8.0)}
    exact = {
        "squared_X": SQUARED, "steps_S": STEPS, "risk_XRS": risk_XRS, "gd": GD,
        "minibatch_squared_X": np.array([5.0, 9.0]),  # one that is not among the long runs
        "minibatch_steps_S": STEPS[:3],
        "minibatch_risk_XRS": training(both(np.full(2, GD), 0.02))[..., [0, 1, 3]],
    }  # fmt: skip
    return {"exact": exact, "alignment": alignment}


FIGURES = {"fig1": (Fig1, fig1), "fig2": (Fig2, fig2), "fig3": (Fig3, fig3), "fig4": (Fig4, fig4)}
FIGURES["fig5"] = (Fig5, fig5)


def verdicts(name, arrays):
    """Return the verdicts of the claims that did not come out as expected."""
    claims = unbuilt(FIGURES[name][0]).claims(records(arrays))
    return {claim.claim: claim.verdict for claim in claims if claim.verdict != claim.expected}


@pytest.mark.parametrize("name", FIGURES)
def test_where_theory_says_every_claim_is_as_expected(name):
    assert verdicts(name, FIGURES[name][1]()) == {}


def at(index):
    """Return the value 2 % higher there."""
    return lambda y: y * (1 + 0.02 * (np.arange(len(y)) == index))[:, None, None]


MUTATIONS = [
    ("fig1", "yq_lsa_XR", lambda y: y * [[1], [1], [1.02]], "trained y_q-LSA ends at"),
    ("fig1", "lsa_XR", lambda y: y * [[1], [1], [1.02]], "trained LSA ends at"),
    ("fig1", "lsa_XR", lambda y: y * [[1], [1], [0.5]], "trained y_q-LSA < trained LSA"),
    ("fig1", "any_heads_G", lambda y: np.full_like(y, GD), "persistent gap"),
    ("fig1", "one_head_G", lambda y: np.minimum(y, y[-2]), "persistent gap"),
    ("fig1", "one_head_G", lambda y: np.where(np.arange(7) == 1, GD + SLOPE / 8, y), "persistent gap"),
    ("fig2", "best_X", lambda y: y + 1e-3 * (np.arange(len(y)) == DIM - 1), "d + 1 heads are needed"),
    ("fig2", "best_X", lambda y: y + 1e-3 * (np.arange(len(y)) == DIM), "Theorem 1"),
    ("fig2", "best_X", lambda y: np.maximum(y, y[1]), "falls with the number of heads"),
    ("fig2", "best_X", lambda y: np.where(np.arange(len(y)) == DIM - 1, y[DIM - 2], y), "up to d"),
    ("fig2", "gd", lambda y: y + SLOPE * PRIOR, "strict lower bound"),
    ("fig2", "risk_XRS", at(6), "more than d + 1"),
    ("fig2", "risk_XRS", at(5), "more than d + 1"),
    ("fig2", "risk_XRS", at(1), "training ends"),
    ("fig2", "minibatch_risk_XRS", lambda y: 1.06 * y, "minibatches"),
    ("fig3", "risk_XRS", lambda y: y + 0.1 * SLOPE * SQUARED[:, None, None], "is linear"),
    ("fig3", "risk_XRS", at(1), "training ends"),
    ("fig4", "vector_risk_XR", lambda y: y + 0.1 * SLOPE * np.c_[[7, -9, 2]], "linear in |v|^2"),
    ("fig4", "vector_risk_XR", lambda y: y + 2 * SLOPE * np.c_[[0, 1, 0]], "linear in |v|^2"),
    ("fig4", "bias_risk_XR", lambda y: GD + 1.1 * (y - GD), "linear in b^2"),
    ("fig4", "bias_risk_XR", lambda y: y * [[1.02], [1], [1]], "training ends"),
    ("fig5", "risk_XRS", lambda y: 1.02 * y, "for every prior mean"),
    ("fig5", "prediction_square_RS", lambda y: y + 0.05, "difference of the predictions"),
    ("fig5", "gradient_square_RS", lambda y: y + 0.05 * np.c_[[0, 1]], "difference of the gradients"),
    ("fig5", "cosine_mean_RS", lambda y: y - [[0], [0.02]], "their cosine ends"),
    ("fig5", "minibatch_risk_XRS", lambda y: 1.06 * y, "minibatches"),
]


@pytest.mark.parametrize(("name", "array", "change", "claim"), MUTATIONS)
def test_a_claim_fails_where_the_data_contradict_it(name, array, change, claim):
    arrays = FIGURES[name][1]()
    part = next(part for part in arrays.values() if array in part)
    part[array] = change(part[array])
    found = [text for text in verdicts(name, arrays) if claim in text]
    assert found, verdicts(name, arrays)


def test_minibatch_curves_share_the_colour_and_one_legend_entry():
    axes = unbuilt(Fig5).picture(records(fig5())).axes[0]
    long = {line.get_label(): line.get_color() for line in axes.lines if line.get_linestyle() == "-"}
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    other, shared, _ = (line.get_color() for line in dotted)
    assert shared == long[r"$\|w^*\|^2$ = 9"] and other not in long.values()
    assert [text.get_text() for text in axes.get_legend().get_texts()].count("minibatch") == 1


SIZE = {"dim": 3, "context": 5, "seeds": [0, 4]}
SHORT = {"minibatch_steps": 6, "minibatch_size": 32}
SMALL = {
    "fig1": Fig1(**SIZE, squared_norms=[4, 0]),
    "fig2": Fig2(**SIZE, **SHORT, heads=[4, 1, 3], squared_norm=4, minibatch_heads=[1]),
    "fig3": Fig3(**SIZE, **SHORT, heads=4, squared_norms=[0, 4.0], minibatch_squared_norms=[]),
    "fig4": Fig4(**SIZE, heads=4, squared_norms=[0, 4], squared_biases=[0, 1]),
    "fig5": Fig5(
        **SIZE,
        **SHORT,
        squared_norms=[0, 4],
        minibatch_squared_norms=[4],
        alignment_squared_norm=4,
        prompts=4000,
    ),
}


def test_figures_share_their_runs():
    asked = {}
    for name, figure in SMALL.items():
        runner = FakeRunner(lambda experiment, overrides: record(run=mark(overrides)))
        runner.store = lambda name, *given: name
        figure.runs(runner)
        asked[name] = runner.asked
    assert asked["fig2"][2] == asked["fig3"][1]  # four heads, |w*|^2 = 4, on the population risk
    assert asked["fig2"][0] == asked["fig1"][1]  # one head
    assert asked["fig4"][0] == asked["fig4"][2] == asked["fig3"][0], (
        "no guess is no guess, whichever is varied"
    )
    shared = [run for run in asked["fig5"] if run in asked["fig1"]]
    assert shared == [*asked["fig1"][2:], asked["fig1"][3]]  # y_q-LSA, and again for panel (b)
    assert len(asked["fig3"]) == 2 and not any("train.batch" in overrides for _, overrides in asked["fig3"])


@pytest.mark.parametrize(("scale", "seeds"), [("laptop", [0, 1, 2]), ("paper", [0, 1, 2, 3, 4])])
def test_a_figures_run_is_that_of_the_experiment(scale, seeds):
    """Find with `icl train experiment=xie/heads` what Figures 2 and 3 trained, and the other way round."""
    overrides = unbuilt_size(10, 10, seeds)._overrides(prior=10.0) | {"model.heads": 11}
    settings = [f"{key}={value}" for key, value in overrides.items()]

    def identity(*more):
        composed = compose(
            ConfigDirs(), "train", ["experiment=xie/heads", f"scale={scale}", "logger=none", *more]
        )
        return train_request(composed, Session(Path("/nowhere"))).identity

    assert identity(*settings) == identity()


def unbuilt_size(dim, context, seeds):
    return Fig1(dim=dim, context=context, seeds=seeds, squared_norms=[0, 1])


@pytest.mark.parametrize(
    ("squares", "error"),
    [
        ({"prior": 4.0}, 4),
        ({"guess": 9.0}, 9),
        ({"bias": 16.0}, 16),
        ({"prior": 4.0, "guess": 9.0, "bias": 16.0}, 17),
    ],
)
def test_settings_are_squares_and_runs_take_their_roots(squares, error):
    """Compare with the exact risk of the same prompts: gaps of 2 (|w* - v|^2 + b^2) / (dC + 2)."""
    size = SMALL["fig1"]
    names = {"prior": "prior_mean_norm", "guess": "guess_vector_norm", "bias": "guess_bias"}
    overrides = size._overrides(**squares)
    assert all(overrides[f"task.{names[key]}"] == value**0.5 for key, value in squares.items())
    least = size.risk(**squares).convex_bound().value
    assert least == pytest.approx(gd_risk(3, 5) + 2 * error / 17, rel=1e-10)


@pytest.mark.parametrize("name", ["heads", "yq_lsa"])
def test_covariates_are_white_at_any_dim(name):
    """Set dim 5, whose default is ahn's Sigma: the exact lines would not be those of the runs."""
    settings = [f"{key}={value}" for key, value in unbuilt_size(5, 5, [0])._overrides(prior=1.0).items()]
    composed = compose(ConfigDirs(), "train", [f"experiment=xie/{name}", "scale=laptop", *settings])
    law = instantiate("task", composed.settings["task"]).law([0])
    assert torch.equal(law.Sigma_RDD[0], torch.eye(5, dtype=torch.float64)) and law.read_out == 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return records of small figures, trained at smoke as by the command line."""
    runner = FigureRunner("smoke", Session(tmp_path_factory.mktemp("outputs")))
    return {name: figure.runs(runner) for name, figure in SMALL.items() if name != "fig3"}


def test_risks_are_exact_however_a_run_was_trained(trained):
    run, short = trained["fig2"]["H3"], trained["fig2"]["minibatch H1"]
    steps_T, loss_ST = metric(run, "loss")
    shared, at_T, at_S = np.intersect1d(steps_T, run.weights["history_steps"], return_indices=True)
    assert {0, 40} <= set(shared.tolist())
    np.testing.assert_allclose(risks(run)[:, at_S], loss_ST[:, at_T], rtol=1e-12)
    np.testing.assert_allclose(risks(short)[:, -1], metric(short, "exact_risk")[1][:, -1], rtol=1e-12)
    assert np.abs(metric(short, "loss")[1][:, 0] / risks(short)[:, 0] - 1).max() > 1e-2  # a batch of 32


def test_the_exact_lines_are_the_closed_forms_and_no_weights_are_below(trained):
    gd, slope = 3 * 4 / (5 + 4), 2 / (3 * 5 + 2)
    gap, heads, guesses = (trained[name]["exact"].weights for name in ("fig1", "fig2", "fig4"))
    assert gap["norm_G"][[0, -1]].tolist() == [0, 2]
    np.testing.assert_allclose(gap["any_heads_G"], gd + slope * gap["norm_G"] ** 2, rtol=1e-12)
    np.testing.assert_allclose(gap["one_head_X"], gap["one_head_G"][[0, -1]], rtol=1e-6)
    assert gap["gd"] == guesses["gd"] == pytest.approx(gd) and guesses["slope"] == pytest.approx(slope)
    for kind in ("vector", "bias"):
        line_X = gd + slope * guesses[f"{kind}_squared_X"]
        np.testing.assert_allclose(guesses[f"{kind}_any_heads_X"], line_X, rtol=1e-10)
    assert heads["heads_X"].tolist() == [1, 3, 4]
    np.testing.assert_allclose([*heads["best_X"][1:], heads["any_heads"]], gd + 4 * slope, rtol=1e-10)
    np.testing.assert_allclose(heads["certified_X"][0], gd + 4 * slope + 4 * lost_slope(3, 5, 1), rtol=1e-10)
    assert heads["certified_X"][0] < heads["best_X"][0]
    assert (heads["risk_XRS"] >= heads["certified_X"][:, None, None] - 1e-12).all()
    assert (gap["yq_lsa_XR"] >= gd - 1e-12).all()


def test_the_excess_is_the_mean_square_of_the_gradients_difference(trained):
    """Compare the exact risk of trained weights with sampled prompts, by way of one GD step."""
    aligned = trained["fig5"]["alignment"].weights
    for name in ("prediction", "gradient"):
        off_RS = np.abs(aligned[f"{name}_square_RS"] - (aligned["risk_RS"] - gd_risk(3, 5)))
        assert (off_RS < 5 * aligned[f"{name}_stderr_RS"]).all()
        assert (aligned[f"{name}_stderr_RS"] < 0.1 * aligned[f"{name}_square_RS"]).all()
    assert (np.diff(aligned["prediction_SQ"], axis=1) > 0).all()


def test_the_gradients_of_eq_7_are_those_of_one_step():
    """Compute the same step in two ways, and on tokens as a third."""
    law = LinearRegression(3, 5, rotation="none", prior_mean=[1.0, -2.0, 0.5], read_out=1).law([7])
    tokens = law.token_prompts([generator(7, "eval")], 6)
    eta, w_star_D, (P_PP, Q_PP) = isotropic_step(3, 5), law.mean_RD[0], torch.zeros(2, 4, 4).double()
    P_PP[3, :3], P_PP[3, 3], Q_PP[:3, :3] = -eta * w_star_D, eta, torch.eye(3)
    family = YqLSA(3, 1)
    family.load({"P": P_PP[None, None], "Q": Q_PP[None, None], "v": w_star_D[None, None, None]})
    model = LinearTransformer(family.requires_grad_(False))
    step_RBD = descent_gradients(tokens.gram().gram_RBPP, law.mean_RD, 5)
    torch.testing.assert_close(
        step_RBD, input_gradients(model, tokens.gram().gram_RBPP), rtol=1e-12, atol=1e-12
    )
    x_BND, y_BN = tokens.context_RBNP[0, :, :, :3], tokens.context_RBNP[0, :, :, 3]
    for x_ND, y_N, step_D in zip(x_BND, y_BN, step_RBD[0], strict=True):
        by_hand = w_star_D + 5 / 9 / 5 * ((y_N - x_ND @ w_star_D)[:, None] * x_ND).sum(0)
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
    torch.testing.assert_close(input_gradients(model, prompt.gram_RBPP), grad_RBP[..., :3])
