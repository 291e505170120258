"""Where the sequences come from: the settings that several checks have in common, and their law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icl.checks.settings import in_range
from icl.errors import whole
from icl.tasks import DynamicalSystem, DynamicalSystemLaw

MAX_LENGTH, MAX_WINDOW, MAX_DIM = 200, 6, 50


def law_of(setting: str, window: int, length: int, dim: int, seed: int, **others: Any) -> DynamicalSystemLaw:
    """The task's law, every setting named as the check's own."""
    in_range("check.dim", dim, 1, MAX_DIM, "systems fill the memory")
    in_range("check.window", window, 1, MAX_WINDOW, "the form takes (window (window + 1)^2)^2 numbers")
    task = DynamicalSystem(dim, length, window, setting, prefix="check", **others)
    return task.law([whole("check.seed", seed, 0)])


@dataclass(eq=False)
class Sequences:
    """The paper's setting (a, b, c, d), length T, dim, seed."""

    setting: str = "a"
    length: int = 30
    dim: int = 5
    seed: int = 0

    def law_at(self, window: int, length: int | None = None, **others: Any) -> DynamicalSystemLaw:
        """Their law, at another length where one is given."""
        in_range("check.length", self.length, 1, MAX_LENGTH, "the covariances of all systems fill the memory")
        return law_of(self.setting, window, length or self.length, self.dim, self.seed, **others)


@dataclass(eq=False)
class Windows(Sequences):
    """Of AR(s) tokens, s the window."""

    window: int = 3

    def __post_init__(self) -> None:
        self.law = self.law_at(self.window)


@dataclass(eq=False)
class NoisySequences(Sequences):
    """With the noise levels."""

    process_noise: float = 0.01
    observation_noise: float = 0.01
    initial_variance: float = 0.01

    def law_at(self, window: int, length: int | None = None, **others: Any) -> DynamicalSystemLaw:
        noise = {
            "process_noise": self.process_noise,
            "observation_noise": self.observation_noise,
            "initial_variance": self.initial_variance,
        }
        return super().law_at(window, length, **noise, **others)
