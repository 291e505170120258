"""Tests of what the loggers of a run get while it trains."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.loggers import CSVLogger, Logger

from icl.callbacks import WeightHeatmaps
from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.run_logger import RunLogger
from icl.metrics import parse_metrics
from icl.training.plan import TrainingPlan
from tests.plans import stopped_at, train_one


class RecordingLogger(Logger):
    """A logger of Lightning's that keeps what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.scalars: list[tuple[int, dict]] = []
        self.pictures: list[tuple[int, str, list[str]]] = []
        self.settings: list[dict] = []

    name, version = "recorded", 0

    def log_metrics(self, metrics: dict, step: int | None = None) -> None:
        assert step is not None
        self.scalars.append((step, metrics))

    def log_image(self, key: str, images: list, step: int, caption: list[str]) -> None:
        assert images[0].mode == "RGB"
        self.pictures.append((step, key, caption))

    def log_hyperparams(self, params: dict, *_: Any, **__: Any) -> None:
        self.settings.append(params)


def followed(plan: TrainingPlan, loggers: list[RecordingLogger]) -> Any:
    """Open a new one of `loggers` for each attempt."""

    @contextlib.contextmanager
    def follow(attempt: int) -> Iterator[list[RunLogger]]:
        loggers.append(RecordingLogger())
        yield [RunLogger(loggers[-1:], plan)]

    return follow


def test_what_a_logger_gets_of_a_run_once(make_plan: Any) -> None:
    loggers: list[RecordingLogger] = []
    plan = make_plan(callbacks={"more": [WeightHeatmaps(2)]})
    follow = followed(plan, loggers)
    live, cached = (train_one(plan, observe=follow) for _ in range(2))
    assert not live.cached and cached.cached
    (logger,) = loggers
    captions = [f"mean of 2 seeds, step {step}" for step in (1, 12)]
    mine = [(step, name, *caption) for step, name, caption in logger.pictures]
    assert mine == [(step, "weights/all", caption) for step, caption in zip((1, 12), captions, strict=True)]
    assert {"commit", "dirty", "versions", "threads"} <= set(logger.settings[-1])
    curves = [(step, scalars) for step, scalars in logger.scalars if "mean/loss" in scalars]
    assert [step for step, _ in curves] == list(range(13))
    scalars = curves[3][1]
    losses = [scalars["seed/0/loss"], scalars["seed/1/loss"]]
    assert scalars["mean/loss"] == pytest.approx(sum(losses) / 2)
    assert (scalars["mean_band/loss/low"], scalars["mean_band/loss/high"]) == (min(losses), max(losses))
    assert scalars["per_matrix/dist_plain_A0"] and "mean_band/dist_plain_A0/low" not in scalars
    assert scalars["mean/lr"] and "seed/0/lr" not in scalars  # the same for all
    assert not [name for _, scalars in curves for name in scalars if name.endswith("_stderr")]  # exactly 0


def test_a_run_that_is_continued_is_logged_from_where_it_was(make_plan: Any) -> None:
    loggers: list[RecordingLogger] = []
    plan = make_plan()
    with stopped_at(7):
        train_one(plan, observe=followed(plan, loggers))
    train_one(plan, observe=followed(plan, loggers))
    steps = [[step for step, scalars in logger.scalars if "mean/loss" in scalars] for logger in loggers]
    assert steps == [list(range(7)), list(range(13))]


def test_what_a_callback_logs_stands_at_its_optimizer_step(
    make_plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log to any of Lightning's loggers; at the end of a batch of 5, 5 and 2 steps."""
    plan = make_plan()
    csv = CSVLogger(tmp_path, name="lab", version="run")

    @contextlib.contextmanager
    def follow(attempt: int) -> Iterator[list[RunLogger]]:
        yield [RunLogger([csv], plan)]

    on_step_end = Checkpoints.on_step_end

    def logs(self: Any, trainer: Any, module: Any, step: int) -> None:
        module.log("taken", float(step))
        on_step_end(self, trainer, module, step)

    monkeypatch.setattr(Checkpoints, "on_step_end", logs)
    train_one(plan, observe=follow)
    table = parse_metrics((tmp_path / "lab" / "run" / "metrics.csv").read_text())
    rows = zip(table["step"], table["taken"], strict=True)
    assert [row for row in rows if row[1] is not None] == [(5, 5), (10, 10), (12, 12)]
