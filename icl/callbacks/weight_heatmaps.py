"""Pictures of a module's matrices while it trains.

R replicas.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger

from icl.callbacks.metrics import StepCallback
from icl.errors import InputError, one_of
from icl.figures.heatmaps import free_of, heatmap_png, largest, panels_of, root_of
from icl.training.module import EnsembleModule


class WeightHeatmaps(StepCallback):
    """Heatmaps at `count` log-spaced steps, or at `steps`: of all matrices or of `which`, of each seed or of
    their mean, as the paper shows them.

    A logger with `log_image` (W&B) or `add_image` (TensorBoard) gets pictures; below the folder of any other
    they are files.
    """

    from_start = False

    def __init__(
        self,
        count: int = 5,
        steps: Sequence[int] | None = None,
        which: Sequence[str] | None = None,
        seeds: str = "mean",
    ) -> None:
        super().__init__(count, steps)
        if isinstance(which, str):
            raise InputError(f"WeightHeatmaps.which={which}: must be a list of names")
        self.which = None if which is None else tuple(which)
        self.seeds = one_of("WeightHeatmaps.seeds", seeds, ("mean", "each"))
        self._largest: dict[str, float] = {}  # entry of each matrix so far: its pictures' scale

    def at(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if not pl_module.row_steps:  # those of a run are drawn for its own loggers
            matrices = pl_module.snapshot.matrices
            arrays = {name: M.numpy() for name, M in matrices.items()}
            self.draw(trainer.loggers, step, arrays, pl_module.law.arrays(), pl_module.seeds)

    def draw(
        self,
        loggers: Sequence[Logger],
        step: int,
        matrices: Mapping[str, np.ndarray],
        arrays: Mapping[str, np.ndarray],
        seeds: Sequence[int],
    ) -> None:
        """Draw matrices (R, ..., rows, columns) for loggers, all steps on one scale.

        `arrays` are the law's: a Sigma whitens A, masks of free entries are outlined.
        """
        for name in self.which or ():
            if name not in matrices:
                raise InputError(f"WeightHeatmaps.which: no matrix {name} (there are {', '.join(matrices)})")
        free = free_of(arrays)
        shown = {name: matrices[name] for name in self.which or matrices}
        for name, labelled in panels_of(shown, root_of(arrays), self.seeds, seeds, free).items():
            matrix, _, seed = name.partition("/seed_")
            self._largest[matrix] = max(self._largest.get(matrix, 0.0), largest(labelled.values()))
            whose = f"seed {seed}" if seed else f"mean of {len(seeds)} seeds"
            caption = f"{matrix}, {whose}, step {step}"
            outlined = free.get(name.partition("/")[0])
            png = heatmap_png(labelled, caption, vmax=self._largest[matrix], free=outlined)
            for logger in loggers:
                _show(logger, step, f"weights/{name}", png, caption)


def _show(logger: Any, step: int, name: str, png: bytes, caption: str) -> None:
    """Show a picture in the way the logger supports."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if hasattr(logger, "log_image"):
        logger.log_image(name, [picture], step, caption=[caption])
    elif hasattr(getattr(logger, "experiment", None), "add_image"):
        logger.experiment.add_image(name, np.asarray(picture), step, dataformats="HWC")
    elif folder := logger.log_dir or logger.save_dir:
        path = Path(folder) / f"{name}-{step:08d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
