"""Settings of a figure's training runs: null leaves what the experiment has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from icl.config.values import resolve_seeds
from icl.errors import InputError, given_matrix, real, whole

KEY = "figure"
ROWS = 200  # of metrics.csv, where the number of steps is given
MOST_LAYERS = 12
DIM = 5  # of the experiments whose Sigma a figure may set


@dataclass(eq=False)
class TrainingSettings:
    """Numbers of layers, dimensions, examples, steps; the seeds; the learning rate; Sigma. A figure with all
    of them inherits from it."""

    layers: int | None = None
    dim: int | None = None
    context: int | None = None
    seeds: Sequence[int] | None = None
    steps: int | None = None
    lr: float | None = None
    covariance: Any = None  # a nested list or a .npy file

    def __post_init__(self) -> None:
        for name in ("layers", "dim", "context", "steps"):
            if getattr(self, name) is not None:
                most = MOST_LAYERS if name == "layers" else None
                whole(f"{KEY}.{name}", getattr(self, name), 1, most)
        if self.lr is not None:
            real(f"{KEY}.lr", self.lr, 0, open_low=True)
        if self.seeds is not None:
            resolve_seeds(self.seeds, None)
        if self.covariance is not None:
            size = self.dim or DIM
            given_matrix(f"{KEY}.covariance", self.covariance, size, size)

    def overrides(self) -> dict[str, Any]:
        """Return overrides of an experiment."""
        given = {
            "model.layers": self.layers,
            "task.dim": self.dim,
            "task.context": self.context,
            "seeds": None if self.seeds is None else list(self.seeds),
            "train.steps": self.steps,
            "optimizer.lr": self.lr,
            "task.covariance": self.covariance,
        }
        if self.steps is not None:
            given["train.log_every"] = max(1, self.steps // ROWS)
        return {key: value for key, value in given.items() if value is not None}


def different(
    name: str, values: Any, *limits: Any, least: int = 1, check: Callable[..., Any] = whole
) -> list[Any]:
    """Return a setting that is a list of different values within limits, integers unless `check` is another
    of icl.errors, `least` of them at least."""
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) < least:
        raise InputError(f"{KEY}.{name}={values}: must be a list of different values, at least {least}")
    found = [check(f"{KEY}.{name}", value, *limits) for value in values]
    if len(set(found)) < len(found):
        raise InputError(f"{KEY}.{name}={found}: has duplicates")
    return found
