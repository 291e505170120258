"""Pictures of a module's matrices while it trains.

R replicas.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl.callbacks.metrics import WeightsCallback
from icl.errors import InputError, one_of
from icl.figures.heatmaps import free_of, heatmap_png, largest, panels_of, root_of
from icl.loggers.names import WEIGHTS
from icl.tasks.law import Law


class WeightHeatmaps(WeightsCallback):
    """One picture at each of `count` log-spaced steps, or at `steps`: of all matrices or of `which`, of each
    seed or of their mean, as the paper shows them.

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
        self._largest = 0.0

    def show(self, loggers: Sequence[Any], step: int, model: Any, law: Law, seeds: Sequence[int]) -> None:
        """Draw all matrices on one scale, that of their largest entry so far. The law's Sigma whitens A, its
        masks of free entries are outlined."""
        matrices = {name: M.detach().numpy() for name, M in model.parametrization.matrices().items()}
        for name in self.which or ():
            if name not in matrices:
                raise InputError(f"WeightHeatmaps.which: no matrix {name} (there are {', '.join(matrices)})")
        shown = {name: matrices[name] for name in self.which or matrices}
        arrays = law.arrays()
        free, outlined = free_of(arrays), dict[str, np.ndarray]()
        pictures: dict[str, dict[str, np.ndarray]] = {}
        for key, labelled in panels_of(shown, root_of(arrays), self.seeds, seeds, free).items():
            name, _, seed = key.partition("/")
            pictures.setdefault(seed, {}).update(labelled)
            outlined |= {label: free[name] for label in labelled if name in free}
        self._largest = max(self._largest, *(largest(labelled.values()) for labelled in pictures.values()))
        for seed, labelled in pictures.items():
            caption = f"{seed.replace('_', ' ') or f'mean of {len(seeds)} seeds'}, step {step}"
            png = heatmap_png(labelled, caption, vmax=self._largest, free=outlined)
            for logger in loggers:
                _show(logger, step, f"{WEIGHTS}/{seed}".rstrip("/"), png, caption)


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
