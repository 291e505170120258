"""Lightning's Trainer and its device; the settings of a run but task, model and optimizer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, ProgressBar
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from icl.config.values import processes
from icl.errors import InputError, one_line, one_of, real, whole
from icl.kernel.library import why_none
from icl.models import Transformer
from icl.tasks.law import Law
from icl.training.estimators import POPULATION
from icl.training.optimizers import OptimizerSpec
from icl.training.processes import world

MOST_STEPS = 10**9  # days of training
DTYPES = {"32-true": torch.float32, "64-true": torch.float64}
CUDA = ("gpu", "cuda")


@dataclass(frozen=True)
class LoopConfig:
    """`train.*`: how long, on what, and how the gradient is estimated and clipped.

    `coordinates`: plain, or those in which the law's prompts are white (what then is a step of the optimizer,
    and clipped, is a matrix there). Weights begin, and are stored and watched, as they are.
    """

    steps: int
    batch: int | None
    steps_per_batch: int = 100
    estimator: str = "expected"
    clip: float | Sequence[float] | None = None
    log_every: int = 10
    coordinates: str = "plain"

    def __post_init__(self) -> None:
        whole("train.steps", self.steps, 1, MOST_STEPS)
        whole("train.steps_per_batch", self.steps_per_batch, 1, MOST_STEPS)
        whole("train.log_every", self.log_every, 1)
        one_of("train.coordinates", self.coordinates, ("plain", "whitened"))
        if not isinstance(self.estimator, str):  # which there are, the law knows
            raise InputError(f"train.estimator={self.estimator}: must be a name, such as sampled")
        if self.estimator != POPULATION:
            whole("train.batch", self.batch, 1)
        elif self.batch is not None:
            raise InputError(
                f"train.batch={self.batch}: must be null: train.estimator=population samples nothing"
            )

    def validate_for_processes(self, reliability: Sequence[str], processes: int) -> None:
        """Refuse a batch that processes cannot share evenly, or an estimator that is no mean over parts."""
        if processes == 1:
            return
        if self.batch is None or self.batch % processes:
            raise InputError(
                f"train.batch={self.batch}: must be a multiple of the {processes} processes it is for"
            )
        if reliability:
            raise InputError(
                f"train.estimator={self.estimator}: judges its reliability from a whole batch, which "
                f"none of {processes} processes has; use expected or sampled"
            )

    def maps(self, model: Transformer, law: Law) -> Mapping[str, tuple[Tensor, Tensor]]:
        """Return the maps of icl.models.coordinates, by matrix of the model."""
        if self.coordinates == "plain":
            return {}
        known, names = law.coordinates(model), model.parametrization.shapes()
        if not set(names) <= set(known):
            where = f"{type(law).__name__} and {type(model.parametrization).__name__}"
            raise InputError(f"train.coordinates={self.coordinates}: not with {where}; use plain")
        return {name: known[name] for name in names}

    def clip_for(self, replicas: int) -> list[float] | None:
        """Return the bound of each replica: none, one for all, or one per replica."""
        if self.clip is None:
            return None
        is_list = isinstance(self.clip, Sequence) and not isinstance(self.clip, str)
        values: list[Any] = list(self.clip) if is_list else [self.clip] * replicas  # type: ignore[arg-type]
        if len(values) != replicas:
            raise InputError(f"train.clip={values}: has {len(values)} entries for {replicas} seeds")
        return [real("train.clip", value, 0, open_low=True) for value in values]


@dataclass(frozen=True)
class TrainerConfig:
    """`trainer.*`: where and how it runs. Only the precision and the number of processes, of which each draws
    prompts of its own, belong to the science. `kernel`: whether it goes through that of icl.kernel; a run
    keeps what it began with. `options` are handed to pl.Trainer as they are."""

    accelerator: str = "auto"
    precision: str = "32-true"
    devices: int | Sequence[int] = 1
    num_nodes: int = 1
    strategy: str = "auto"
    threads: int | None = None
    kernel: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("trainer.accelerator", self.accelerator, ("auto", "cpu", *CUDA, "mps"))
        one_of("trainer.precision", self.precision, tuple(DTYPES))
        one_of("trainer.strategy", self.strategy, ("auto", "ddp"))
        one_of("trainer.kernel", self.kernel, ("auto", "tile", "eager"))
        if self.kernel == "tile" and (reason := why_none()) is not None:
            raise InputError(f"trainer.kernel=tile: {reason}")
        processes(self.devices, self.num_nodes)
        if self.threads is not None:
            whole("trainer.threads", self.threads, 1, 4096)
        chosen = self.chosen_accelerator
        missing = chosen in CUDA and not torch.cuda.is_available()
        if missing or (chosen == "mps" and not torch.backends.mps.is_available()):
            raise InputError(f"trainer.accelerator={self.accelerator}: no such device here; use auto or cpu")
        if self.precision == "64-true" and chosen == "mps":
            raise InputError(
                "trainer.precision=64-true: Apple's GPU has no float64; set trainer.accelerator=cpu"
            )

    @property
    def chosen_accelerator(self) -> str:
        """Accelerator: `auto` is CUDA if available, else the CPU; Apple's GPU is untested and must be
        named (mps)."""
        if self.accelerator == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        if self.accelerator == "gpu" and not torch.cuda.is_available() and torch.backends.mps.is_available():
            return "mps"
        return self.accelerator

    def free_device_bytes(self) -> int | None:
        """Return the free memory of the GPU that is trained on; None on the CPU, which has the machine's."""
        if self.chosen_accelerator not in CUDA:
            return None
        index = None if isinstance(self.devices, int) else self.devices[0]
        return torch.cuda.mem_get_info(index)[0]

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.precision]

    @property
    def processes(self) -> int:
        return processes(self.devices, self.num_nodes)


@dataclass(frozen=True, kw_only=True)
class RunComponents:
    """Objects built from a training config."""

    law: Law
    model: Transformer
    optimizer: OptimizerSpec
    train: LoopConfig
    trainer: TrainerConfig
    callbacks: Sequence[pl.Callback]


def make_trainer(
    settings: TrainerConfig,
    callbacks: Sequence[pl.Callback] = (),
    loggers: Sequence[Logger] = (),
    root: str | Path | None = None,
) -> pl.Trainer:
    """Build the trainer for one pass over a prompt stream, without Lightning's extras unless listed."""

    def listed(kind: type[pl.Callback]) -> bool:
        return any(isinstance(callback, kind) for callback in callbacks)

    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.profilers").setLevel(logging.INFO)  # trainer.profiler prints so
    try:
        return pl.Trainer(
            **{
                "enable_model_summary": False,
                "log_every_n_steps": 1,  # of Lightning's, which are batches
                "limit_val_batches": 0,  # a record has its measures
                **settings.options,
                "accelerator": settings.chosen_accelerator,
                "devices": settings.devices,
                "num_nodes": settings.num_nodes,
                "strategy": DDPStrategy() if settings.processes > 1 else "auto",
                "plugins": [_environment(settings.processes)],
                "precision": settings.precision,
                "max_epochs": 1,
                "callbacks": list(callbacks),
                "logger": list(loggers),
                "enable_checkpointing": listed(Checkpoint),
                "enable_progress_bar": listed(ProgressBar),
                "use_distributed_sampler": False,
                "default_root_dir": root,
            }
        )
    except (MisconfigurationException, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"trainer: {one_line(error)}") from error


def _environment(processes: int) -> ClusterEnvironment:
    """Where a run's processes come from. A job of one process that srun has started is a run of its own."""
    by = world().by if processes > 1 else ""
    if by == "torchrun":
        return TorchElasticEnvironment()
    return SLURMEnvironment(auto_requeue=False) if by == "srun" else LightningEnvironment()
