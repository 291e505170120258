"""Tests of the callbacks under a plain Trainer: what they measure and draw, and that they change nothing."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from PIL import Image
from pytorch_lightning.loggers import CSVLogger

from icl.callbacks import CriticalPointGradient, WeightHeatmaps
from icl.errors import InputError
from icl.training.ensemble import Ensemble
from tests.callbacks.test_run_logger import RecordingLogger
from tests.plans import QUIET, MakePlan

STEPS = 12  # of conftest's plan


def fit(make: MakePlan, callbacks: list[pl.Callback], logger: Any = False) -> Any:
    module = Ensemble(make()).build_module()
    pl.Trainer(callbacks=callbacks, logger=logger, precision="64-true", **QUIET).fit(module)
    return module


def rows(folder: Path) -> dict[int, dict[str, float]]:
    with open(folder / "metrics.csv") as file:
        found = [row for row in csv.DictReader(file) if row["gradient_norm"]]
    return {int(row.pop("step")): {k: float(v) for k, v in row.items() if v} for row in found}


def test_gradient_norms_at_chosen_steps(make_plan: MakePlan, tmp_path: Path) -> None:
    """Compare the last with the derivative of the exact risk, a mean over the seeds."""
    logger = CSVLogger(tmp_path, name=None, version="run")
    module = fit(make_plan, [CriticalPointGradient(steps=[0, 7, STEPS])], logger)
    found = rows(tmp_path / "run")
    assert list(found) == [0, 7, STEPS]
    model = module.snapshot.model
    (A,) = model.parametrization.parameters()
    (gradient,) = torch.autograd.grad(module.law.exact_risk(model)(model).sum(), [A])
    assert found[STEPS]["gradient_norm"] == pytest.approx(float(gradient.flatten(1).norm(dim=1).mean()))
    assert found[STEPS]["gradient_norm_A1_stderr"] == 0


def test_watching_changes_nothing_that_is_trained(make_plan: MakePlan) -> None:
    watched = fit(make_plan, [CriticalPointGradient(), WeightHeatmaps()])
    assert torch.equal(watched.trained["A"], fit(make_plan, []).trained["A"])


def test_heatmaps_are_files_beside_the_metrics(make_plan: MakePlan, tmp_path: Path) -> None:
    fit(make_plan, [WeightHeatmaps(steps=[1, STEPS])], CSVLogger(tmp_path, name=None, version="run"))
    found = sorted((tmp_path / "run" / "weights").glob("*.png"))
    assert [path.name for path in found] == ["all-00000001.png", "all-00000012.png"]
    first, last = (np.asarray(Image.open(path).convert("RGB")) for path in found)
    assert not np.array_equal(first, last)


@pytest.mark.parametrize(("seeds", "names"), [("mean", ["all"]), ("each", ["all/seed_0", "all/seed_1"])])
def test_heatmaps_of_seeds(make_plan: MakePlan, seeds: str, names: list[str]) -> None:
    logger = RecordingLogger()
    fit(make_plan, [WeightHeatmaps(2, which=["A"], seeds=seeds)], logger)
    seen = [(key, step) for step, key, _ in logger.pictures]
    assert seen == [(f"weights/{name}", step) for step in (1, STEPS) for name in names]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightHeatmaps(-1), r"WeightHeatmaps\.count=-1: must be an integer from 0 to 1000000"),
        (lambda: WeightHeatmaps(seeds="all"), r"WeightHeatmaps\.seeds=all"),
        (lambda: WeightHeatmaps(which="A"), r"WeightHeatmaps\.which=A: must be a list of names"),
        (lambda: WeightHeatmaps(steps=[1.5]), r"WeightHeatmaps\.steps=1\.5"),
        (lambda: CriticalPointGradient(samples=63), r"samples=63: must be an integer from 64 to 10000000"),
    ],
)
def test_impossible_settings(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_matrix_that_is_not_there(make_plan: MakePlan) -> None:
    with pytest.raises(InputError, match=r"no matrix B \(there are A\)"):
        fit(make_plan, [WeightHeatmaps(1, which=["B"])], RecordingLogger())


def remarks_of(plain: float | None, risk: float | None, error: float = 0.01) -> Any:
    """Return the remarks about the last row of one seed."""
    errors = {"risk_plain_batch_stderr": error, "risk_estimate_stderr": error}
    row = {"seed": 3, "risk_plain_batch": plain, "risk_estimate": risk, **errors}
    return CriticalPointGradient(samples=20_000).remarks([row])


def test_a_risk_that_rare_prompts_dominate_is_said_in_words() -> None:
    assert remarks_of(0.385, 4.36e42, 1e41) == [
        "seed 3: the population risk is about 4.4e+42 although a batch of 20,000 prompts shows 0.39; rare "
        "prompts dominate"
    ]
    assert "rare prompts make the difference" in remarks_of(3.4, 3.6)[0]
    assert remarks_of(3.4, 3.6, 0.1) == remarks_of(None, None) == []
