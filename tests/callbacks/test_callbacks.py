"""Tests of the callbacks on foreign modules under a stock Trainer, and of a user's own in a run."""

import csv
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from PIL import Image
from pytorch_lightning.loggers import CSVLogger
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from icl.callbacks import CriticalPointGradient, Profile, WeightHeatmaps
from icl.errors import InputError
from tests.plans import QUIET

D, STEPS = 3, 20
SIGMA = torch.diag(torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64))
TRUTH = torch.arange(6.0, dtype=torch.float64).reshape(2, D)


class Regression(pl.LightningModule):
    """y = W x with gaussian x, whose population risk is |(W - W*) Sigma^{1/2}|^2."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(D, 2, bias=False, dtype=torch.float64)
        nn.init.zeros_(self.layer.weight)
        self.seen: list[Tensor] = []

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        self.seen.append(self.layer.weight.detach().clone())
        x_BD, y_BK = batch
        return (self.layer(x_BD) - y_BK).square().sum(-1).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


def matrices(module: Regression) -> Mapping[str, Tensor]:
    return {"W": module.layer.weight}


def risk(module: Regression) -> Tensor:
    miss = module.layer.weight - TRUTH
    return (miss @ SIGMA * miss).sum()


def estimates(module: Regression) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(0)
    for _ in range(16):
        x_BD = torch.randn(2000, D, dtype=torch.float64, generator=generator) @ SIGMA.sqrt()
        yield (x_BD @ (module.layer.weight - TRUTH).mT).square().sum(-1).mean()


def fit(
    callbacks: list[pl.Callback], folder: Path, accumulate: int = 1, logger: pl.loggers.Logger | None = None
) -> Regression:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(16 * STEPS * accumulate, D, dtype=torch.float64, generator=generator) @ SIGMA.sqrt()
    module = Regression()
    logger = logger or CSVLogger(folder, name=None, version="run")
    trainer = pl.Trainer(callbacks=callbacks, logger=logger, accumulate_grad_batches=accumulate, **QUIET)
    trainer.fit(module, DataLoader(TensorDataset(x, x @ TRUTH.mT), batch_size=16))
    assert trainer.global_step == STEPS
    return module


def rows(folder: Path) -> dict[int, dict[str, float]]:
    with open(folder / "run" / "metrics.csv") as file:
        found = list(csv.DictReader(file))
    return {int(row.pop("step")): {k: float(v) for k, v in row.items() if v} for row in found}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_gradient_norms_of_a_plain_regression(tmp_path: Path, accumulate: int) -> None:
    callback = CriticalPointGradient(steps=[0, 7, STEPS], matrices=matrices, risk=risk)
    module = fit([callback], tmp_path, accumulate)
    found = rows(tmp_path)
    assert list(found) == [0, 7, STEPS]
    weights = [*module.seen[::accumulate], module.layer.weight.detach()]
    for step, row in found.items():
        expected = float((2 * (weights[step] - TRUTH) @ SIGMA).norm())
        assert row["gradient_norm_W"] == pytest.approx(expected, rel=1e-12)
        assert row["gradient_norm"] == row["gradient_norm_W"] and row["gradient_norm_W_stderr"] == 0
    assert found[STEPS]["gradient_norm"] < found[0]["gradient_norm"] / 2


def test_sampled_gradient_norms_have_errors(tmp_path: Path) -> None:
    exact = CriticalPointGradient(steps=[0], matrices=matrices, risk=risk)
    sampled = CriticalPointGradient(steps=[0], matrices=matrices, risk=estimates)
    fit([exact], tmp_path / "exact")
    fit([sampled], tmp_path / "sampled")
    true, row = rows(tmp_path / "exact")[0], rows(tmp_path / "sampled")[0]
    assert 0 < row["gradient_norm_W_stderr"] < 0.05 * true["gradient_norm_W"]
    assert abs(row["gradient_norm_W"] - true["gradient_norm_W"]) < 4 * row["gradient_norm_W_stderr"]
    assert abs(row["risk_estimate"] - float(risk(Regression()).detach())) < 4 * row["risk_estimate_stderr"]


def test_measuring_changes_nothing_that_is_trained(tmp_path: Path) -> None:
    watched = fit([CriticalPointGradient(matrices=matrices, risk=estimates)], tmp_path / "watched")
    assert torch.equal(watched.layer.weight, fit([], tmp_path / "alone").layer.weight)


def test_heatmaps_of_a_plain_regression_are_files_beside_the_metrics(tmp_path: Path) -> None:
    fit([WeightHeatmaps(steps=[1, STEPS], matrices=matrices)], tmp_path)
    found = sorted((tmp_path / "run" / "weights").glob("*.png"))
    assert [path.name for path in found] == ["W-00000001.png", "W-00000020.png"]
    first, last = (np.asarray(Image.open(path).convert("RGB")) for path in found)
    assert not np.array_equal(first, last)


class Pictures(pl.loggers.Logger):
    """A logger that keeps pictures as W&B's does."""

    name, version = "pictures", 0

    def __init__(self) -> None:
        super().__init__()
        self.images: list[tuple[str, int | None]] = []

    def log_hyperparams(self, *_: Any) -> None: ...

    def log_metrics(self, *_: Any) -> None: ...

    def log_image(self, key: str, images: list[Any], step: int | None = None) -> None:
        assert images[0].mode == "RGB"
        self.images.append((key, step))


@pytest.mark.parametrize(("seeds", "names"), [("mean", ["W"]), ("each", ["W/seed_0", "W/seed_1"])])
def test_heatmaps_of_replicas(tmp_path: Path, seeds: str, names: list[str]) -> None:
    """Show only the chosen matrix of two regressions in one module."""

    def stacks(module: Regression) -> dict[str, Tensor]:
        W = module.layer.weight
        return {"W": torch.stack([W, 2 * W]), "other": W}

    logger = Pictures()
    fit([WeightHeatmaps(2, which=["W"], seeds=seeds, matrices=stacks)], tmp_path, logger=logger)
    assert logger.images == [(f"weights/{name}", step) for step in (1, STEPS) for name in names]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightHeatmaps(-1), r"WeightHeatmaps\.count=-1: must be an integer from 0 to 1000000"),
        (lambda: WeightHeatmaps(seeds="all"), r"WeightHeatmaps\.seeds=all"),
        (lambda: WeightHeatmaps(which="A"), r"WeightHeatmaps\.which=A: must be a list of names"),
        (lambda: WeightHeatmaps(steps=[1.5]), r"WeightHeatmaps\.steps=1\.5"),
        (lambda: CriticalPointGradient(samples=63), r"samples=63: must be an integer from 64 to 10000000"),
        (lambda: CriticalPointGradient(risk=risk), "matrices and risk must be given together"),
    ],
)
def test_impossible_settings(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_matrix_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no matrix B \(there are W\)"):
        fit([WeightHeatmaps(1, which=["B"], matrices=matrices)], tmp_path)


def rows_of_risks(plain: float, risk: float, error: float) -> list[dict[str, float]]:
    """Return the last row of one seed, with a risk from a plain batch and from weighted prompts."""
    errors = {"risk_plain_batch_stderr": error, "risk_estimate_stderr": error}
    return [{"seed": 3, "risk_plain_batch": plain, "risk_estimate": risk, **errors}]


def test_a_risk_that_rare_prompts_dominate_is_said_in_words():
    callback = CriticalPointGradient(samples=20_000)
    assert callback.remarks(rows_of_risks(0.385, 4.36e42, 1e41)) == [
        "seed 3: the population risk is about 4.4e+42 although a batch of 20,000 prompts shows 0.39; rare "
        "prompts dominate: train.estimator=tilted"
    ]
    (little,) = callback.remarks(rows_of_risks(3.4, 3.6, 0.01))
    assert "rare prompts make the difference" in little
    assert callback.remarks(rows_of_risks(3.4, 3.6, 0.1)) == []
    assert callback.remarks([{"seed": 3, "risk_plain_batch": None, "risk_estimate": None}]) == []


def test_the_rows_of_a_profile_are_disjoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that each second given to the profiler stands in one row, whatever hook it was spent in."""
    profile = Profile()
    fit([profile, WeightHeatmaps(count=1, matrices=matrices)], tmp_path)
    (head, *lines, total) = capsys.readouterr().err.splitlines()
    assert head.split() == ["profile", "seconds", "ms", "a", "step", "share"]
    assert total.startswith("total") and any(line.startswith("callback WeightHeatmaps") for line in lines)
    seconds = {"run_training_batch": 20.0, "optimizer_step": 8.0, "A.on_step_end": 3.0,
               "[Callback]A.on_train_start": 1.0, "[Callback]B.on_before_optimizer_step": 2.0,
               "[_TrainingEpochLoop].train_dataloader_next": 4.0}  # fmt: skip
    profile.profiler.recorded_durations = {action: [spent] for action, spent in seconds.items()}
    profile._began = time.monotonic() - 30
    rows = {line[:34].strip(): float(line[34:44]) for line in list(profile.table())[1:]}
    assert rows.pop("total") == pytest.approx(sum(rows.values()), abs=0.01)
    rows.pop("the rest")
    assert rows == {"risk and gradient": 9, "optimizer": 6, "waiting for prompts": 4, "callback A": 4,
                    "callback B": 2}  # fmt: skip
