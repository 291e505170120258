"""Tests of the module under a plain Trainer: as the page says, resumed, watched and validated."""

import re
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader

from icl.callbacks import ExactRisk
from icl.random import generator
from icl.training.ensemble import Ensemble
from icl.training.estimators import make_estimator
from icl.training.plan import TrainingPlan
from tests.plans import QUIET, MakePlan, train_one

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "trainer.md"
STEPS = 12  # of conftest's plan, 5 on each set of prompts


def module_of(plan: TrainingPlan) -> Any:
    return Ensemble(plan).build_module()


def trainer_of(*callbacks: pl.Callback, **options: Any) -> pl.Trainer:
    common = {"logger": False, "precision": "64-true", **QUIET, "max_epochs": -1}
    return pl.Trainer(callbacks=list(callbacks), **(common | options))


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict = {}
    exec(first, names)
    law, model = names["law"], names["model"]
    assert names["trainer"].global_step == 200 and (tmp_path / "checkpoints" / "last.ckpt").exists()
    optimum = law.exact_risk(model)(model)
    assert optimum.shape == (2,) and (optimum < 0.75 * 3).all(), "less than that of zero weights, which is d"
    exec(second, names)
    assert isinstance(names["trainer"], pl.Trainer) and names["trainer"].global_step == 200
    assert list((tmp_path / "outputs" / "csv").rglob("metrics.csv"))


class Steps(pl.Callback):
    def __init__(self) -> None:
        self.taken: list[int] = []

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        self.taken.append(step)


@pytest.mark.parametrize("stop", [{"limit_train_batches": 1, "max_epochs": 1}, {"max_steps": 5}])
@pytest.mark.parametrize("workers", [None, 0, 1])
def test_a_checkpoint_of_lightnings_continues(
    make_plan: MakePlan, tmp_path: Path, stop: dict[str, Any], workers: int | None
) -> None:
    """Take every step once, on its own prompts (or those of a loader of a user's): the weights of a training
    that was never stopped."""

    def fit(trainer: pl.Trainer, ckpt: Path | None = None) -> Any:
        module, loader = module_of(make_plan()), None
        if workers is not None:
            loader = DataLoader(module.prompts(), batch_size=None, num_workers=workers)
        trainer.fit(module, loader, ckpt_path=ckpt, weights_only=False)
        return module

    whole, first, rest = fit(trainer_of()), Steps(), Steps()
    trainer = trainer_of(first, **stop)
    fit(trainer)
    trainer.save_checkpoint(tmp_path / "stopped.ckpt")
    trainer = trainer_of(rest)
    resumed = fit(trainer, tmp_path / "stopped.ckpt")
    assert first.taken + rest.taken == list(range(1, STEPS + 1)) and trainer.global_step == STEPS
    assert torch.equal(resumed.trained["A"], whole.trained["A"])


def test_callbacks_that_monitor(make_plan: MakePlan, tmp_path: Path) -> None:
    """Monitor every set of prompts: the means of the rows that a run has at these steps."""
    record = train_one(make_plan(callbacks={"count": 0})).record
    seen: dict[int, dict[str, float]] = {}

    class Sees(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            seen[trainer.global_step] = {k: float(v) for k, v in trainer.callback_metrics.items()}

    best = ModelCheckpoint(tmp_path, monitor="loss", every_n_train_steps=1, filename="{step}-{loss:.6f}")
    last = EarlyStopping("loss", patience=1)
    options = {"enable_checkpointing": True, "max_epochs": 1, "limit_val_batches": 0}
    trainer_of(ExactRisk(steps=[7]), best, last, Sees(), **options).fit(module_of(make_plan()))
    losses = torch.tensor(record.metrics["loss"]).view(-1, 2).mean(1).tolist()
    for taken, looked_at in ((5, 4), (10, 9), (STEPS, STEPS)):  # the last weights seen on a set of prompts
        assert seen[taken]["loss"] == pytest.approx(losses[looked_at], rel=1e-6)
    assert "exact_risk" not in seen[5] and seen[10]["exact_risk"] > 0
    assert best.best_model_score == pytest.approx(min(v["loss"] for v in seen.values()))
    assert last.best_score == pytest.approx(seen[STEPS]["loss"])


@pytest.mark.parametrize("estimator", ["expected", "sampled", "population", "tilted"])
def test_validation_is_on_prompts_of_its_own(make_plan: MakePlan, estimator: str) -> None:
    """Validate before the first step, too, where Lightning looks whether it works; training has the same
    weights."""
    batch = None if estimator == "population" else 64
    plans = [make_plan(train={"estimator": estimator, "batch": batch}) for _ in range(2)]
    validated, alone = map(module_of, plans)
    trainer = trainer_of(max_epochs=1)
    trainer.fit(validated)
    trainer_of(max_epochs=1, limit_val_batches=0).fit(alone)
    assert torch.equal(validated.trained["A"], alone.trained["A"])
    (found,) = trainer.validate(validated, verbose=False)
    made = make_estimator(estimator, plans[0].model, plans[0].law)
    draw = made.draw([generator(seed, "eval") for seed in plans[0].seeds], batch or 0)
    with torch.no_grad():
        expected = float(made.risk(validated._model(), draw).mean())
    assert found["val_loss"] == pytest.approx(expected, rel=1e-6)
