"""Trainer, callbacks and optimizer of a config, built and validated."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger

from icl.config.objects import instantiate, target_class
from icl.errors import InputError, nearest
from icl.models import Transformer
from icl.tasks.law import Law
from icl.training.estimators import make_estimator
from icl.training.hooks import RunCallback, in_order
from icl.training.load import law_and_model
from icl.training.optimizers import OptimizerSpec
from icl.training.trainer import RunComponents, TrainerConfig, make_trainer

OURS = {  # options of pl.Trainer, and what sets them in a run
    "max_epochs": "train.steps",
    "max_steps": "train.steps",
    "callbacks": "callbacks",
    "logger": "logger",
    "default_root_dir": "paths.outputs",
}


def build_parts(config: Mapping[str, Any], built: tuple[Law, Transformer] | None = None) -> RunComponents:
    """Build the parts of a run; `built` are its law and model, where they exist already."""
    law, model = built or law_and_model(config["task"], config["model"], config["seeds"])
    return RunComponents(
        law=law,
        model=model,
        optimizer=build_optimizer(config["optimizer"]),
        train=instantiate("train", {"_target_": "icl.training.trainer.LoopConfig", **config["train"]}),
        trainer=build_trainer_settings(config["trainer"]),
        callbacks=build_callbacks(config["callbacks"]),
    )


def validate(parts: RunComponents, seeds: Sequence[int], processes: int) -> None:
    """Validate combinations: options per seed, estimator and model, clip and optimizer."""
    law, model, optimizer, train = parts.law, parts.model, parts.optimizer, parts.train
    replicas = len(seeds)
    torch.empty(replicas, law.dim, train.batch or 0)  # at least, of a set of prompts
    optimizer.per_replica(replicas)
    if train.clip_for(replicas) is not None and optimizer.needs_per_replica_step:
        raise InputError("train.clip: must be null with L-BFGS, whose line search needs the true gradient")
    estimator = make_estimator(train.estimator, model, law)
    train.validate_for_processes(estimator.reliability_names, processes)
    if processes > 1 and optimizer.needs_per_replica_step:
        raise InputError("optimizer: L-BFGS searches along one process's loss; set trainer.devices=1")
    train.maps(model, law)
    for callback in parts.callbacks:
        if isinstance(callback, RunCallback):
            callback.validate_run(parts, replicas)
    model.parametrization.initialise(seeds)


def build_trainer_settings(node: Mapping[str, Any]) -> TrainerConfig:
    """Trainer settings: those of icl, and any other option of pl.Trainer."""
    own = [f.name for f in fields(TrainerConfig) if f.name != "options"]
    known = [*own, *inspect.signature(pl.Trainer).parameters]
    options = {}
    for name, value in node.items():
        if name == "_target_":
            continue
        if name in OURS:
            raise InputError(f"trainer.{name}: not here: set {OURS[name]} instead")
        if name not in known:
            raise InputError(f"trainer.{name}: pl.Trainer has no such option{nearest(name, known)}")
        if name not in own:
            nested = isinstance(value, Mapping) and "_target_" in value
            options[name] = instantiate(f"trainer.{name}", value) if nested else value
    settings = TrainerConfig(**{k: v for k, v in node.items() if k in own}, options=options)
    make_trainer(settings)
    return settings


def trainer(
    callbacks: Sequence[pl.Callback] = (),
    logger: Sequence[Logger] = (),
    default_root_dir: str | Path | None = None,
    **settings: Any,
) -> pl.Trainer:
    """Return the Trainer that `conf/trainer` describes: `hydra.utils.instantiate(cfg.trainer, ...)`."""
    return make_trainer(build_trainer_settings(settings), in_order(callbacks), logger, default_root_dir)


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
