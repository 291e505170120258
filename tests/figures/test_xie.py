"""What xie's figures compute, and which runs they ask for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.figures.arrays import metric
from icl.figures.xie.fig1 import Fig1
from icl.figures.xie.fig5 import alignment_of
from icl.figures.xie.runs import risks
from icl.jobs.requests.figure import FigureRunner
from icl.jobs.requests.train import parse as train_request
from icl.theory.closed_forms import isotropic_risk
from tests.figures.bases import built

SIZE = {"dim": 3, "context": 5, "seeds": [0, 4]}
SHORT = {"minibatch_steps": 6, "minibatch_size": 32}
LAST = {"squared_norms": [0, 4], "minibatch_squared_norms": [4], "alignment_squared_norm": 4, "prompts": 4000}
OWN = {
    "fig1": {"squared_norms": [4, 0]},
    "fig2": {**SHORT, "heads": [4, 1, 3], "squared_norm": 4, "minibatch_heads": [1]},
    "fig4": {"heads": 4, "squared_norms": [0, 4], "squared_biases": [0, 1]},
    "fig5": {**SHORT, **LAST},
}
SMALL = {name: built(f"xie/{name}", **SIZE, **settings) for name, settings in OWN.items()}


def overrides(size, **squares):
    return [f"{key}={value}" for key, value in size._overrides(**squares).items()]


@pytest.mark.parametrize(("scale", "seeds"), [("laptop", [0, 1, 2]), ("paper", [0, 1, 2, 3, 4])])
def test_a_figures_run_is_that_of_the_experiment(scale, seeds):
    """Find with `icl train experiment=xie/heads` what Figures 2 and 3 trained, and the other way round."""
    settings = overrides(Fig1(dim=10, context=10, seeds=seeds, squared_norms=[0, 1]), prior=10.0)

    def identity(*more):
        given = ["experiment=xie/heads", f"scale={scale}", "logger=none", *more]
        return train_request(compose(ConfigDirs(), "train", given), Session(Path("/nowhere"))).identity

    assert identity(*settings, "model.heads=11") == identity()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return records of small figures, trained at smoke as by the command line."""
    runner = FigureRunner("smoke", Session(tmp_path_factory.mktemp("outputs")))
    found = {name: figure.runs(runner) for name, figure in SMALL.items()}
    one_seed = replace(SMALL["fig5"], seeds=[0]).yq_lsa(runner, prior=4)
    return found | {"one seed": alignment_of(one_seed, LAST["prompts"])}


def test_risks_are_exact_however_a_run_was_trained(trained):
    run, short = trained["fig2"]["H3"], trained["fig2"]["minibatch H1"]
    tasks = [one.config["task"] for one in (run, short, trained["fig5"]["aligned"])]
    assert {task["covariance"] for task in tasks} == {"identity"}, "another is the default at dim 5"
    steps_T, loss_ST = metric(run, "loss")
    shared, at_T, at_S = np.intersect1d(steps_T, run.weights["history_steps"], return_indices=True)
    assert {0, 40} <= set(shared.tolist())
    np.testing.assert_allclose(risks(run)[:, at_S], loss_ST[:, at_T], rtol=1e-12)
    np.testing.assert_allclose(risks(short)[:, -1], metric(short, "exact_risk")[1][:, -1], rtol=1e-12)
    assert np.abs(metric(short, "loss")[1][:, 0] / risks(short)[:, 0] - 1).max() > 1e-2, "a batch of 32"


def test_the_exact_lines_are_the_closed_forms_and_no_weights_are_below(trained):
    gd, slope = 3 * 4 / (5 + 4), 2 / (3 * 5 + 2)
    gap, heads, guesses = (trained[name]["exact"].weights for name in ("fig1", "fig2", "fig4"))
    assert gap["norm_G"][[0, -1]].tolist() == [0, 2] and heads["heads_X"].tolist() == [1, 3, 4]
    np.testing.assert_allclose(gap["any_heads_G"], gd + slope * gap["norm_G"] ** 2, rtol=1e-12)
    np.testing.assert_allclose(gap["one_head_X"], gap["one_head_G"][[0, -1]], rtol=1e-6)
    assert gap["gd"] == guesses["gd"] == pytest.approx(gd) and guesses["slope"] == pytest.approx(slope)
    for kind in ("vector", "bias"):
        line_X = gd + slope * guesses[f"{kind}_squared_X"]
        np.testing.assert_allclose(guesses[f"{kind}_any_heads_X"], line_X, rtol=1e-10)
    np.testing.assert_allclose([*heads["best_X"][1:], heads["any_heads"]], gd + 4 * slope, rtol=1e-10)
    kappa, rho = 4 * 17 / (5 * 7), 6 * (1 + 4 / 5)  # one head of d = 3, C = 5 loses in closed form
    lost = (5 / 17) ** 2 * kappa * rho / (kappa + rho)
    np.testing.assert_allclose(heads["certified_X"][0], gd + 4 * slope + 4 * lost, rtol=1e-10)
    assert heads["certified_X"][0] < heads["best_X"][0]
    assert (heads["risk_XRS"] >= heads["certified_X"][:, None, None] - 1e-12).all()
    assert (gap["yq_lsa_XR"] >= gd - 1e-12).all()


def test_the_excess_is_the_mean_square_of_the_gradients_difference(trained):
    """Compare the exact risk of trained weights with sampled prompts, by way of one GD step."""
    excess_RS = risks(trained["fig5"]["aligned"]) - isotropic_risk(3, 5)
    for seeds, aligned in ((2, trained["fig5"]["alignment"].weights), (1, trained["one seed"])):
        for name in ("prediction", "gradient"):
            square_RS = aligned[f"{name}_square_RS"]
            np.testing.assert_allclose(square_RS, excess_RS[:seeds], rtol=0.1)
        assert len(aligned["prediction_SQ"]) == len(aligned["steps_S"])
        assert (np.diff(aligned["prediction_SQ"], axis=1) > 0).all()
