"""Trainer, callbacks and optimizer of a config, built and validated."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pytorch_lightning as pl
import torch

from icl.config import instantiate, target_class
from icl.config.objects import settings_of
from icl.config.train_config import TrainConfig
from icl.errors import InputError, nearest
from icl.models import Transformer
from icl.tasks.law import Law
from icl.training.load import law_and_model
from icl.training.optimizers import OptimizerSpec
from icl.training.settings import TrainerSettings, TrainSettings, make_trainer

REFUSED = {  # options of pl.Trainer that have no effect here, and what to use instead
    **dict.fromkeys(
        ("max_epochs", "min_epochs", "max_steps", "min_steps", "max_time"),
        "set train.steps instead; scale=smoke makes a run short",
    ),
    "fast_dev_run": "debug=fast takes two steps",
    "overfit_batches": "debug=overfit trains on one small set of prompts",
    "limit_train_batches": "debug=limit takes 100 steps, train.steps=N takes N",
    "accumulate_grad_batches": "a gradient is over all of train.batch, which is split to fit the cache",
    **dict.fromkeys(
        ("gradient_clip_val", "gradient_clip_algorithm"), "train.clip bounds each matrix of each seed"
    ),
    **dict.fromkeys(
        ("sync_batchnorm", "use_distributed_sampler"),
        "there is none; of several processes each draws its own share of the prompts",
    ),
    "plugins": "use trainer.precision, which is part of the fingerprint",
    "logger": "use logger=...",
    "callbacks": "use callbacks.NAME._target_=...",
    "default_root_dir": "everything is written below paths.outputs",
    "enable_checkpointing": "use callbacks.checkpoint and checkpoint=true",
    "enable_progress_bar": "use callbacks.progress",
    "barebones": "use callbacks=none logger=none",
    "reload_dataloaders_every_n_epochs": "prompts are drawn afresh every train.steps_per_batch steps",
}  # fmt: skip


@dataclass(frozen=True)
class RunParts:
    """The parts of a TrainingPlan that a training config describes."""

    law: Law
    model: Transformer
    optimizer: OptimizerSpec
    train: TrainSettings
    trainer: TrainerSettings
    callbacks: tuple[pl.Callback, ...]


def build_parts(config: TrainConfig, built: tuple[Law, Transformer] | None = None) -> RunParts:
    """Build the parts of a run; `built` are its law and model, where they exist already."""
    law, model = built or law_and_model(config.task, config.model, config.seeds)
    return RunParts(
        law,
        model,
        build_optimizer(config.optimizer),
        settings_of(TrainSettings, "train", config.train),
        build_trainer_settings(config.trainer),
        build_callbacks(config.stored["callbacks"]),
    )


def build_trainer_settings(node: Mapping[str, Any]) -> TrainerSettings:
    """Trainer settings: those of icl, and the options of pl.Trainer that have an effect here."""
    own = [f.name for f in fields(TrainerSettings) if f.name != "options"]
    known = [*own, *inspect.signature(pl.Trainer).parameters]
    options = {}
    for name, value in node.items():
        if name in REFUSED:
            raise InputError(f"trainer.{name}: not here: {REFUSED[name]}")
        if name not in known:
            raise InputError(f"trainer.{name}: pl.Trainer has no such option{nearest(name, known)}")
        if name not in own:
            nested = isinstance(value, Mapping) and "_target_" in value
            options[name] = instantiate(f"trainer.{name}", value) if nested else value
    settings = TrainerSettings(**{k: v for k, v in node.items() if k in own}, options=options)
    make_trainer(settings)
    return settings


def build_callbacks(nodes: Mapping[str, Any]) -> tuple[pl.Callback, ...]:
    """`callbacks.*`: by name, those that are not null, in the order of the config."""
    found = []
    for name, node in nodes.items():
        if node is None:
            continue
        if not isinstance(node, Mapping):
            raise InputError(f"callbacks.{name}={node}: must be null, or settings with a _target_")
        callback = instantiate(f"callbacks.{name}", node)
        if not isinstance(callback, pl.Callback):
            raise InputError(f"callbacks.{name}._target_={node['_target_']}: must be a pl.Callback")
        found.append(callback)
    return tuple(found)


def build_optimizer(node: Mapping[str, Any]) -> OptimizerSpec:
    """`optimizer.*`: of torch.optim, with its schedule."""
    options = {k: v for k, v in node.items() if k not in ("_target_", "schedule")}
    cls = target_class("optimizer", node.get("_target_"))
    if not issubclass(cls, torch.optim.Optimizer):
        raise InputError(f"optimizer._target_={node['_target_']}: must be a torch.optim.Optimizer")
    named = node.get("schedule") or {}
    if not isinstance(named, Mapping):
        raise InputError(f"optimizer.schedule={named}: must be a group of settings (schedule=... names one)")
    schedule = instantiate("optimizer.schedule", named)
    if not hasattr(schedule, "rate"):
        raise InputError(f"optimizer.schedule._target_={node['schedule']['_target_']}: must be a schedule")
    return OptimizerSpec(cls, options, schedule)
