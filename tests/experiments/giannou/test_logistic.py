"""Tests of Figures 1, 7 and 10: the runs they request, and the numbers computed from them."""

import numpy as np
import pytest
import torch

from icl.experiments.giannou.fig10 import Fig10
from icl.experiments.giannou.logistic import Logistic
from icl.models import Encoder
from icl.random import generator
from icl.tasks import LogisticRegression
from icl.theory.logistic import LogisticLoss
from tests.records import FakeRunner, mark, record

SEEDS = [0, 4]
TASK = {"dim": 3, "context": 8, "mu": 0.1}
REST = {"newton_steps": 3, "inversion_steps": 5, "prompts": 40}
MODEL = {"width": 4, "heads": 2, "hidden": 0, "reads": "parameter"}


def untrained(experiment, overrides):
    assert experiment == "giannou/logistic"
    settings = MODEL | {"layers": overrides["model.layers"]}
    model = Encoder(3, **settings, init_std=0.5)
    model.parametrization.initialise(SEEDS)
    weights = {name: M.detach().numpy() for name, M in model.parametrization.matrices().items()}
    task = {"_target_": "icl.tasks.LogisticRegression", **TASK}
    config = {"task": task, "model": {"_target_": "icl.models.Encoder", **settings}}
    return record(path="nowhere", run=mark(settings["layers"], SEEDS), weights=weights, config=config)


def test_losses_are_those_of_the_outputs(monkeypatch):
    runner = FakeRunner(untrained)
    figure = Logistic([2, 1], SEEDS, **TASK, **REST)
    monkeypatch.setattr("icl.experiments.giannou.logistic.restored", Restored)
    records = figure.records(runner)
    assert [asked["model.layers"] for _, asked in runner.asked] == [1, 2] == runner.science["layers"]
    assert runner.asked[0][1]["task.context"] == 8 and runner.asked[0][1]["seeds"] == SEEDS
    found = records["losses"].weights
    law = LogisticRegression(**TASK).law(SEEDS)
    prompt, best_RBD = law.prompts_and_targets([generator(seed, "eval") for seed in SEEDS], 40)
    a_BND, y_BN = prompt.context_RBNP[1, ..., :-1], prompt.context_RBNP[1, ..., -1]
    loss = LogisticLoss(a_BND, y_BN, 0.1)
    x_BD = torch.zeros(40, 3, dtype=torch.float64)
    assert np.allclose(found["newton_TR"][0], np.log(2), rtol=1e-12)
    for step in range(4):
        value_B = loss.value(x_BD)
        assert found["newton_TR"][step, 1] == pytest.approx(float(value_B.mean()), rel=1e-12)
        x_BD = loss.damped_step(x_BD)
    assert found["least_R"][1] == pytest.approx(float(loss.value(best_RBD[1]).mean()), rel=1e-12)
    model = Restored(records["L=2"]).transformer
    trained_B = loss.value(model.read(prompt)[1])
    assert found["trained_LR"][1, 1] == pytest.approx(float(trained_B.mean()), rel=1e-12)
    gap = found["trained_LR"][:, None] - found["newton_TR"]
    assert np.allclose(found["gap_LTR"], gap, rtol=1e-9, atol=1e-12)
    assert np.allclose(found["trained_excess_LR"], found["trained_LR"] - found["least_R"], atol=1e-12)
    assert (found["trained_excess_LR"] > 0).all() and (found["newton_excess_TR"] > -1e-15).all()
    assert (found["gap_stderr_LTR"] > 0).all() and found["error_LR"].shape == (2, 2)


class Restored:
    """A stand-in for what `restored` makes of a run, without a folder."""

    def __init__(self, run):
        from icl.training.load import law_and_model

        self.law, self.transformer = law_and_model(run.config["task"], run.config["model"], SEEDS)
        matrices = {name: torch.from_numpy(M) for name, M in run.weights.items()}
        self.transformer.parametrization.load(matrices)
        self.transformer.requires_grad_(False)


def test_the_surfaces_hold_what_the_check_measures():
    found = Fig10(10, 100).records(FakeRunner())["surfaces"].weights
    # dh/dx at a grid point by differences of h along x, from the definition
    x, c = found["x_X"][7], found["c_C"][3]

    def h(x):
        delta = np.sqrt(x**2 / (1 + x) ** 2 - 2 * c / (1 + x))
        return -(x**2) / (1 + x) + c - delta - np.log1p(-delta)

    assert found["slope_XC"][7, 3] == pytest.approx((h(x + 1e-6) - h(x - 1e-6)) / 2e-6, rel=1e-6)
    assert np.isnan(found["slope_XC"][0, -1])
    assert np.nanmax(found["slope_XC"]) <= found["largest_slope"] + 1e-3
    allowed = np.abs(found["y_Y"]) <= 0.01
    assert np.nanmax(found["h_YZ"][allowed]) <= found["largest_h"] + found["largest_h_error"]
    assert found["largest_h"] > -0.01 > found["largest_h_own"]
