"""Settings that name where the sequences come from, and their law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icl.checks.settings import integer, validate
from icl.tasks import DynamicalSystem, DynamicalSystemLaw

MAX_LENGTH, MAX_WINDOW, MAX_DIM = 200, 6, 50


def law_of(setting: str, window: int, length: int, dim: int, seed: int, **others: Any) -> DynamicalSystemLaw:
    """Return the task's law, every setting named as the check's own."""
    return DynamicalSystem(dim, length, window, setting, prefix="check", **others).law([seed])


@dataclass(eq=False)
class Sequences:
    """The paper's setting (a, b, c, d), length T, dim, seed."""

    setting: str = "a"
    length: int = integer(30, 1, MAX_LENGTH, "the covariances of all systems fill the memory")
    dim: int = integer(5, 1, MAX_DIM, "systems fill the memory")
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)

    def law_at(self, window: int, length: int | None = None, **others: Any) -> DynamicalSystemLaw:
        """Return their law, at another length where one is given."""
        return law_of(self.setting, window, length or self.length, self.dim, self.seed, **others)


@dataclass(eq=False)
class Windows(Sequences):
    """Of AR(s) tokens, s the window."""

    window: int = integer(3, 1, MAX_WINDOW, "the form takes (window (window + 1)^2)^2 numbers")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law = self.law_at(self.window)


@dataclass(eq=False)
class NoisySequences(Sequences):
    """With the noise levels."""

    process_noise: float = 0.01
    observation_noise: float = 0.01
    initial_variance: float = 0.01

    def law_at(self, window: int, length: int | None = None, **others: Any) -> DynamicalSystemLaw:
        """Return their law with this noise."""
        noise = {
            "process_noise": self.process_noise,
            "observation_noise": self.observation_noise,
            "initial_variance": self.initial_variance,
        }
        return super().law_at(window, length, **noise, **others)
