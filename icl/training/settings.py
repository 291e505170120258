"""Settings of a run that are neither task, model nor optimizer."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, ProgressBar
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from icl.config.values import processes
from icl.errors import InputError, one_line, one_of, whole
from icl.kernel.library import why_none
from icl.models import Transformer
from icl.tasks.law import Law
from icl.training.distributed import ProcessGroup
from icl.training.estimators import POPULATION
from icl.training.optimizers import clip_vector

COORDINATES = ("plain", "whitened")
MOST_STEPS = 10**9  # days of training
ROWS = 1_000_000  # of metrics.csv: every checkpoint holds them
PRECISIONS = ("32-true", "64-true", "bf16-mixed")
DTYPES = dict(zip(PRECISIONS, (torch.float32, torch.float64, torch.float32), strict=True))  # of weights
ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")
STRATEGIES = ("auto", "ddp")
KERNELS = ("auto", "tile", "eager")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MATMUL_PRECISIONS = ("highest", "high", "medium")
CUDA = ("gpu", "cuda")


@dataclass(frozen=True)
class TrainSettings:
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
        whole("train.steps", self.steps, 1)
        whole("train.steps_per_batch", self.steps_per_batch, 1, MOST_STEPS)
        whole("train.log_every", self.log_every, 1)
        if self.steps > ROWS * self.log_every:
            raise InputError(
                f"train.log_every={self.log_every}: makes {self.steps // self.log_every} rows of metrics, "
                f"{ROWS} at most"
            )
        one_of("train.coordinates", self.coordinates, COORDINATES)
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

    def validate_memory(self, model: Transformer, replicas: int, trainer: TrainerSettings) -> None:
        """Refuse a batch whose Gram matrices do not fit in this machine's memory, where they are drawn in
        double precision, or in that of the GPU, where they are trained on."""
        if self.batch is None:
            return
        numbers = replicas * self.batch * model.parametrization.dim**2
        device, machine = trainer.free_device_bytes(), math.inf
        if hasattr(os, "sysconf"):
            machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        own = math.inf if device is None else device
        memories = (("this machine has", 8, machine), ("this GPU has free", trainer.dtype.itemsize, own))
        for words, size, there in memories:
            if size * numbers > there:
                raise InputError(
                    f"train.batch={self.batch}: one batch takes {size * numbers / 2**30:,.0f} GiB, "
                    f"{words} {there / 2**30:,.0f}"
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
        return clip_vector(self.clip, replicas)


@dataclass(frozen=True)
class TrainerSettings:
    """`trainer.*`: where and how it runs. Only the precision and the number of processes, of which each draws
    prompts of its own, belong to the science. `compile`: a backend of torch.compile that the risk then goes
    through, in its mode `compile_mode`. `kernel`: whether it goes through that of icl.kernel; a run
    keeps what it began with. `matmul_precision`: of torch.set_float32_matmul_precision. `options` are handed
    to pl.Trainer as they are."""

    accelerator: str = "auto"
    precision: str = "32-true"
    devices: int | Sequence[int] = 1
    num_nodes: int = 1
    strategy: str = "auto"
    threads: int | None = None
    compile: str | None = None
    compile_mode: str | None = None
    matmul_precision: str = "highest"
    kernel: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("trainer.accelerator", self.accelerator, ACCELERATORS)
        one_of("trainer.precision", self.precision, PRECISIONS)
        one_of("trainer.strategy", self.strategy, STRATEGIES)
        one_of("trainer.kernel", self.kernel, KERNELS)
        if self.kernel == "tile" and (self.compile is not None or self.precision == "bf16-mixed"):
            other = "trainer.compile" if self.compile is not None else "trainer.precision=bf16-mixed"
            raise InputError(f"trainer.kernel=tile: not with {other}; use auto or eager")
        if self.kernel == "tile" and (reason := why_none()) is not None:
            raise InputError(f"trainer.kernel=tile: {reason}")
        processes(self.devices, self.num_nodes)
        if self.threads is not None:
            whole("trainer.threads", self.threads, 1, 4096)
        if self.compile is not None:
            one_of("trainer.compile", self.compile, torch.compiler.list_backends(exclude_tags=()))
        if self.compile_mode is not None:
            one_of("trainer.compile_mode", self.compile_mode, COMPILE_MODES)
            if self.compile != "inductor":
                raise InputError(
                    f"trainer.compile_mode={self.compile_mode}: is inductor's; set trainer.compile=inductor"
                )
        one_of("trainer.matmul_precision", self.matmul_precision, MATMUL_PRECISIONS)
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
        """Accelerator: `auto` is CUDA where there is one, else the CPU; Apple's GPU is untested and must be
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


def make_trainer(
    settings: TrainerSettings,
    callbacks: Sequence[pl.Callback] = (),
    loggers: Sequence[Logger] = (),
    root: str | Path | None = None,
    process_group: ProcessGroup | None = None,
) -> pl.Trainer:
    """Build the trainer for one pass over a prompt stream, without Lightning's extras unless listed."""

    def listed(kind: type[pl.Callback]) -> bool:
        return any(isinstance(callback, kind) for callback in callbacks)

    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    process_group = process_group or ProcessGroup(settings.processes)
    alone = process_group.size == 1
    how = {"plugins": [LightningEnvironment()]} if alone else {"strategy": process_group.strategy()}
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
                **how,
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
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise InputError(f"trainer: {one_line(error)}") from error
