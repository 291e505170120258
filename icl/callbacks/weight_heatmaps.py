"""Pictures of a module's matrices while it trains, for every logger of its trainer.

R replicas.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from icl.callbacks.metrics import Matrices, StepCallback, run_recorders
from icl.errors import InputError, one_of
from icl.figures.heatmaps import Panels, free_of, heatmap_png, panels_of, root_of
from icl.training.module import EnsembleModule


class WeightHeatmaps(StepCallback):
    """Heatmaps at `count` log-spaced steps, or at `steps`: of all matrices or of `which`, of each seed or of
    their mean.

    A run's module has its matrices, shown as the paper shows them. Of any other `matrices(pl_module)` gives
    them by name: a matrix, or a stack of them behind a replica axis. A logger with `log_image` (W&B) or
    `add_image` (TensorBoard) gets pictures; below the folder of any other they are files.
    """

    from_start = False

    def __init__(
        self,
        count: int = 5,
        steps: Sequence[int] | None = None,
        which: Sequence[str] | None = None,
        seeds: str = "mean",
        matrices: Matrices | None = None,
    ) -> None:
        super().__init__(count, steps)
        if isinstance(which, str):
            raise InputError(f"WeightHeatmaps.which={which}: must be a list of names")
        self.which = None if which is None else tuple(which)
        self.seeds = one_of("WeightHeatmaps.seeds", seeds, ("mean", "each"))
        self.matrices = matrices

    def at(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        if run_recorders(trainer):
            return  # who follows a run draws what is set here, all steps on one scale
        free = free_of(self._arrays(pl_module))
        for name, labelled in self.panels(pl_module).items():
            png = heatmap_png(labelled, f"{name}, step {step}", free=free.get(name.partition("/")[0]))
            for logger in trainer.loggers:
                show(logger, step, f"weights/{name}", png)

    def panels(self, pl_module: Any) -> Panels:
        if self.matrices is None and not isinstance(pl_module, EnsembleModule):
            raise InputError("WeightHeatmaps.matrices: missing; a function of the module that names matrices")
        found = pl_module.snapshot.matrices if self.matrices is None else self.matrices(pl_module)
        arrays = {name: _stack(tensor).numpy() for name, tensor in self.chosen_of(found).items()}
        of_law = self._arrays(pl_module)
        return panels_of(
            arrays, root_of(of_law), self.seeds, getattr(pl_module, "seeds", None), free_of(of_law)
        )

    def _arrays(self, pl_module: Any) -> Mapping[str, Any]:
        """Return the law's arrays that say how a run's own matrices are shown."""
        law = getattr(pl_module, "law", None)
        return {} if law is None or self.matrices is not None else law.arrays()

    def chosen_of(self, matrices: Mapping[str, Any]) -> dict[str, Any]:
        """Return the matrices that are shown."""
        for name in self.which or ():
            if name not in matrices:
                raise InputError(f"WeightHeatmaps.which: no matrix {name} (there are {', '.join(matrices)})")
        return {name: matrices[name] for name in self.which or matrices}


def _stack(tensor: Tensor) -> Tensor:
    """Return a stack with a replica axis and one of matrices, on the CPU."""
    M = tensor.detach().cpu().double()
    return M[None, None] if M.ndim == 2 else M[:, None] if M.ndim == 3 else M


def show(logger: Any, step: int, name: str, png: bytes) -> None:
    """Show a picture in the way the logger supports."""
    import numpy as np
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if hasattr(logger, "log_image"):
        logger.log_image(name, [picture], step)
    elif hasattr(getattr(logger, "experiment", None), "add_image"):
        logger.experiment.add_image(name, np.asarray(picture), step, dataformats="HWC")
    elif folder := logger.log_dir or logger.save_dir:
        path = Path(folder) / f"{name}-{step:08d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
