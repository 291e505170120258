"""A run as a Lightning checkpoint, and the module that such a file loads as, knowing no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from icl.config.objects import settings_of
from icl.config.train_config import TrainConfig
from icl.runs import atomic, layout
from icl.runs.record import RunRecord
from icl.training.build import build_optimizer
from icl.training.load import TrainedRun, law_and_model, restored
from icl.training.module import EnsembleModule
from icl.training.settings import DTYPES, TrainerSettings, TrainSettings, make_trainer


class TrainedModule(EnsembleModule):
    """The module of a run, made from plain settings: of its weights and law it has all that training had.

    `TrainedModule.load_from_checkpoint(path, weights_only=True)`, then `module(prompt)` with prompts of
    `module.law`, or `Trainer.fit` to go on from the weights (with a fresh optimizer).
    """

    def __init__(
        self,
        task: Mapping[str, Any],
        model: Mapping[str, Any],
        optimizer: Mapping[str, Any],
        train: Mapping[str, Any],
        precision: str,
        seeds: Sequence[int],
    ) -> None:
        law, transformer = law_and_model(task, model, seeds)
        transformer.parametrization.initialise(seeds, DTYPES[precision])
        settings, spec = settings_of(TrainSettings, "train", train), build_optimizer(optimizer)
        super().__init__(transformer, law, settings, spec, seeds, DTYPES[precision])
        self.save_hyperparameters()

    @classmethod
    def of(cls, run: TrainedRun) -> Self:
        """Return the module with the final weights of a finished run."""
        config = TrainConfig.of(run.config)
        precision = config.trainer["precision"]
        nodes = config.task, config.model, config.optimizer, config.train
        module = cls(*nodes, precision, run.run["seeds"])
        family = module.model.parametrization
        matrices = {k: torch.from_numpy(M.copy()).to(DTYPES[precision]) for k, M in run.matrices.items()}
        with torch.no_grad():
            for name, trained in module.coordinates.parameters_of(matrices).items():
                module.trained[name].copy_(trained)
            for name, M_RLIJ in family.matrices().items():
                M_RLIJ.copy_(matrices[name])
        return module


def export(record: RunRecord) -> Path:
    """Write the run's Lightning checkpoint, which `weights_only=True` loads: it holds no objects."""
    module, path = TrainedModule.of(restored(record)), record.path / layout.LIGHTNING
    precision = record.config["trainer"]["precision"]
    trainer = make_trainer(TrainerSettings(accelerator="cpu", precision=precision))
    trainer.strategy.connect(module)
    taken = trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total
    taken.ready = taken.completed = module.total_steps
    path.parent.mkdir(exist_ok=True)
    part = atomic.temporary(path)
    trainer.save_checkpoint(part, weights_only=True)
    part.rename(path)
    return path
