"""Tests of the module under a stock trainer: resumed, watched, validated, asked for predictions."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from icl.callbacks import ExactRisk, WeightHeatmaps
from icl.config.objects import target_class
from icl.random import generator
from icl.training import loop
from icl.training.load import Predictor
from icl.training.stream import PromptStream
from tests.plans import QUIET, train_one

STEPS = 12  # of conftest's plan, 5 on each set of prompts


def module_of(plan: loop.TrainingPlan) -> Any:
    return loop.build_module(plan)


def trainer_of(*callbacks: pl.Callback, **options: Any) -> pl.Trainer:
    common = {"logger": False, "precision": "64-true", **QUIET, "max_epochs": -1}
    return pl.Trainer(callbacks=list(callbacks), **(common | options))


class Steps(pl.Callback):
    def __init__(self) -> None:
        self.taken: list[int] = []

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        self.taken.append(step)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("stop", [{"limit_train_batches": 1, "max_epochs": 1}, {"max_steps": 5}])
@pytest.mark.parametrize("own_loader", [True, False])
def test_a_checkpoint_of_lightnings_continues(
    make_plan: Callable[..., Any], tmp_path: Path, stop: dict[str, Any], own_loader: bool, workers: int
) -> None:
    """Take every step once, on its own prompts: the weights of a training that was never stopped."""

    def fit(trainer: pl.Trainer, ckpt: Path | None = None) -> Any:
        module = module_of(make_plan())
        loader = None if own_loader else DataLoader(module.prompts(), batch_size=None, num_workers=workers)
        trainer.fit(module, loader, ckpt_path=ckpt, weights_only=False)
        return module

    whole = fit(trainer_of())
    first, rest = Steps(), Steps()
    trainer = trainer_of(first, **stop)
    fit(trainer)
    trainer.save_checkpoint(tmp_path / "stopped.ckpt")
    trainer = trainer_of(rest)
    resumed = fit(trainer, tmp_path / "stopped.ckpt")
    assert first.taken + rest.taken == list(range(1, STEPS + 1)) and trainer.global_step == STEPS
    assert torch.equal(resumed.trained["A"], whole.trained["A"])


def test_prompts_of_steps_already_taken_are_not_drawn(
    make_plan: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw only what Lightning asks for before it says how far it is, and the set after that."""
    plan = make_plan(train={"steps": 100})
    trainer = trainer_of(max_steps=70)
    trainer.fit(module_of(plan))
    trainer.save_checkpoint(tmp_path / "stopped.ckpt")
    drawn: list[int] = []
    draw = PromptStream.draw
    monkeypatch.setattr(PromptStream, "draw", lambda self, step: drawn.append(step) or draw(self, step))
    trainer_of().fit(module_of(plan), ckpt_path=tmp_path / "stopped.ckpt", weights_only=False)
    assert drawn == [0, 5, 10, *range(70, 100, 5)]


def test_a_loader_serves_two_trainings(make_plan: Callable[..., Any], tmp_path: Path) -> None:
    """Keep prompts that one training passes over for the next."""
    plan = make_plan()
    trainer = trainer_of(max_steps=10)
    trainer.fit(module_of(plan))
    trainer.save_checkpoint(tmp_path / "stopped.ckpt")
    loader = module_of(plan).train_dataloader()
    steps = Steps()
    trainer_of().fit(module_of(plan), loader, ckpt_path=tmp_path / "stopped.ckpt", weights_only=False)
    trainer_of(steps).fit(module_of(plan), loader)
    assert steps.taken == list(range(1, STEPS + 1))


def test_callbacks_that_monitor(make_plan: Callable[..., Any], tmp_path: Path) -> None:
    """Monitor every batch of prompts: the means of the rows that a run has at these steps."""
    record = train_one(make_plan(callbacks={"count": 0})).record
    seen: dict[int, dict[str, float]] = {}

    class Sees(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            seen[trainer.global_step] = {k: float(v) for k, v in trainer.callback_metrics.items()}

    best = ModelCheckpoint(tmp_path, monitor="loss", every_n_train_steps=1, filename="{step}-{loss:.6f}")
    last = EarlyStopping("loss", patience=1)
    logger = CSVLogger(tmp_path / "csv")
    options = {"enable_checkpointing": True, "logger": logger, "max_epochs": 1, "limit_val_batches": 0}
    trainer_of(ExactRisk(steps=[7]), best, last, Sees(), **options).fit(module_of(make_plan()))
    rows: dict[int, list[float]] = {}
    for step, loss in zip(record.metrics["step"], record.metrics["loss"], strict=True):
        rows.setdefault(step, []).append(loss)
    means = {step: sum(losses) / len(losses) for step, losses in rows.items()}
    for taken, looked_at in ((5, 4), (10, 9), (STEPS, STEPS)):  # the last weights seen on a set of prompts
        assert seen[taken]["loss"] == pytest.approx(means[looked_at], rel=1e-6)
    assert "exact_risk" not in seen[5] and seen[10]["exact_risk"] > 0
    assert best.best_model_score == pytest.approx(min(v["loss"] for v in seen.values()))
    assert last.best_score == pytest.approx(seen[STEPS]["loss"])
    written = next((tmp_path / "csv").rglob("metrics.csv")).read_text()
    assert "loss" in written and len(written.splitlines()) >= 1 + 3


def test_they_work_in_a_run(make_plan: Callable[..., Any], tmp_path: Path) -> None:
    """Train with them in a run, in which they change nothing."""
    plain = train_one(make_plan()).record
    monitors = [
        EarlyStopping("loss"),
        EarlyStopping("exact_risk"),
        ModelCheckpoint(tmp_path / "best", monitor="loss"),
    ]
    watched = train_one(make_plan(name="watched", callbacks={"more": monitors})).record
    assert plain.metrics == watched.metrics
    assert (plain.weights["A"] == watched.weights["A"]).all()
    assert list((tmp_path / "best").glob("*.ckpt"))


@pytest.mark.parametrize("estimator", ["expected", "sampled", "population", "tilted"])
def test_validation_is_on_prompts_of_its_own(make_plan: Callable[..., Any], estimator: str) -> None:
    """Validate before the first step, too, where Lightning looks whether it works; training has the same
    weights."""
    batch = None if estimator == "population" else 64
    plan = make_plan(train={"estimator": estimator, "batch": batch})
    other = make_plan(train={"estimator": estimator, "batch": batch})
    validated, alone = module_of(plan), module_of(other)
    trainer = trainer_of(max_epochs=1)
    trainer.fit(validated)
    trainer_of(max_epochs=1, limit_val_batches=0).fit(alone)
    assert torch.equal(validated.trained["A"], alone.trained["A"])
    (found,) = trainer.validate(validated, verbose=False)
    made = loop.make_estimator(estimator, plan.model, plan.law)
    draw = made.draw([generator(seed, "eval") for seed in plan.seeds], batch or 0)
    with torch.no_grad():
        expected = float(made.risk(validated._model(), draw).mean())
    assert found["val_loss"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_predictions(make_plan: Callable[..., Any], precision: str) -> None:
    """Predict for given covariates and labels, such as those of a data set."""
    plan = make_plan(trainer={"precision": precision})
    module = module_of(plan)
    rng = generator(0, "check")
    x, y, x_query = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((7, 6, 2), (7, 6), (7, 2)))
    trainer: Any = trainer_of(precision=precision)
    loader = DataLoader(TensorDataset(x, y, x_query), batch_size=4)
    found_RB = torch.cat(trainer.predict(module, loader), dim=1)
    expected_RB = Predictor(module.model, plan.law)(x, y, x_query)
    assert found_RB.shape == (2, 7)
    torch.testing.assert_close(found_RB, expected_RB)


def test_half_precision_that_ends_in_nan_says_so(
    make_plan: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    steep = torch.optim.SGD, {"lr": 1e3}
    module = module_of(make_plan(optimizer=steep, train={"clip": None}, trainer={"precision": "32-true"}))
    with caplog.at_level(logging.WARNING, logger="icl.training.module"):
        trainer_of(max_epochs=1, precision="16-true", limit_val_batches=0).fit(module)
    (said,) = [r.getMessage() for r in caplog.records if r.name == "icl.training.module"]
    assert "the loss of seeds [0, 1] is not finite" in said and "32-true" in said and "\n" not in said


@pytest.mark.parametrize(("estimator", "coordinates"), [("expected", "plain"), ("tilted", "whitened")])
def test_constants_are_no_state(make_plan: Callable[..., Any], estimator: str, coordinates: str) -> None:
    """Load weights from checkpoints that still hold constants; unknown keys are refused."""
    plan = make_plan(train={"estimator": estimator, "coordinates": coordinates, "clip": None})
    module = module_of(plan)
    state = module.state_dict()
    assert all(name.startswith(("trained.", "model.")) for name in state), list(state)
    earlier = {"_estimators.0.query_root": torch.zeros(2), "coordinates.left_A": torch.zeros(2)}
    weights = {name: torch.full_like(tensor, 0.5) for name, tensor in state.items()}
    module.load_state_dict(earlier | weights)
    assert torch.equal(module.trained["A"], torch.full_like(module.trained["A"], 0.5))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        module.load_state_dict(weights | {"other.A": torch.zeros(2)})


def test_lightnings_other_name() -> None:
    """Give the classes that our trainer knows by names of lightning.pytorch, whether or not it is
    installed."""
    name = "lightning.pytorch.callbacks.EarlyStopping"
    assert target_class("callbacks.stop", name) is EarlyStopping
    for wrong, said in (
        ("lightning.pytorch.callbacks.Stopping", "cannot be imported"),
        ("lightning.pytorch.cli.LightningCLI", "is not a class that a config may build"),
        ("lightning.fabric.Fabric", "must be in one of icl"),
    ):
        with pytest.raises(ValueError, match=said) as refused:
            target_class("callbacks.stop", wrong)
        assert len(str(refused.value).splitlines()) == 1


def test_heatmaps_of_its_own_matrices(make_plan: Callable[..., Any], tmp_path: Path) -> None:
    """Draw the paper's matrices by default: the module has a snapshot of its weights."""
    logger = CSVLogger(tmp_path, "heatmaps")
    trainer_of(WeightHeatmaps(steps=[STEPS]), logger=logger).fit(module_of(make_plan()))
    assert [path.name for path in tmp_path.rglob("*.png")] == [f"A-{STEPS:08d}.png"]
