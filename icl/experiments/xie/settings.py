"""What can be set of Figure 6, refused without torch: where no model is here, nothing needs it."""

from __future__ import annotations

from dataclasses import dataclass

from icl.errors import real, whole

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class GuessTraining:
    """Adam on the squared error, `batch` pairs at a time."""

    hidden: int = 16
    lr: float = 1e-3
    epochs: int = 10
    batch: int = 8

    def __post_init__(self) -> None:
        for name in ("hidden", "epochs", "batch"):
            whole(f"figure.experiment.guess.{name}", getattr(self, name), 1)
        real("figure.experiment.guess.lr", self.lr, 0, open_low=True)
