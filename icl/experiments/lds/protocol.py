"""The paper's training protocol, Tables 1 and 2, and the runs that the figures ask for.

s `window`, T `length`, D `dim` states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icl.config import resolve_seeds
from icl.errors import InputError, one_of, real, whole
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord
from icl.tasks import DynamicalSystem, DynamicalSystemLaw
from icl.tasks.dynamical_system import MAX_SYSTEMS, SETTINGS

KEY = "figure.experiment"
WARMUP = 0.1  # of the steps: 800 of 8001; nine times as many for the cosine


@dataclass(frozen=True)
class WindowSettings:
    """Settings that the tables give for one window."""

    betas: tuple[float, float]
    weight_decay: float
    lr: float
    batch: int
    min_lr: float


TABLE_1 = {
    1: WindowSettings((0.98, 0.99), 1e-2, 2e-2, 3000, 1e-4),
    2: WindowSettings((0.92, 0.96), 5e-3, 3e-2, 4000, 1e-4),
    3: WindowSettings((0.10, 0.55), 1e-2, 9e-2, 8000, 1e-4),
    4: WindowSettings((0.76, 0.88), 5e-3, 9e-2, 16_000, 1e-4),
}
TABLE_2 = {
    1: WindowSettings((0.98, 0.99), 1e-2, 3e-3, 3000, 1e-5),
    2: WindowSettings((0.92, 0.96), 5e-3, 5e-3, 4000, 1e-5),
    3: WindowSettings((0.92, 0.96), 1e-2, 7e-3, 8000, 1e-5),
}


@dataclass(frozen=True)
class ProtocolSize:
    """One setting, its size, and how long is trained. Runs with the same settings are shared by figures.

    `fresh`: new systems at every step, as the paper trained; else on the population risk, exact in settings
    (a) and (b), of `systems` drawn once in (c) and (d), which is also what weights are judged by there.
    `lr`: null for the tables'.
    """

    setting: str
    dim: int
    length: int
    seeds: Sequence[int]
    steps: int
    systems: int
    fresh: bool = False
    lr: float | None = None

    def __post_init__(self) -> None:
        one_of(f"{KEY}.setting", self.setting, SETTINGS)
        whole(f"{KEY}.steps", self.steps, 10)
        whole(f"{KEY}.systems", self.systems, 1, MAX_SYSTEMS)
        resolve_seeds(self.seeds, None)
        if self.lr is not None:
            real(f"{KEY}.lr", self.lr, 0, open_low=True)
        if not isinstance(self.fresh, bool):
            raise InputError(f"{KEY}.fresh={self.fresh}: must be true or false")

    @property
    def drawn_once(self) -> int | None:
        return self.systems if self.setting in ("c", "d") else None

    @property
    def science(self) -> dict[str, Any]:
        """Settings that an exact risk depends on."""
        return {"setting": self.setting, "dim": self.dim, "length": self.length, "systems": self.drawn_once}

    def windows(self, windows: Sequence[int]) -> list[int]:
        """Windows of the tables, in ascending order."""
        tables = TABLE_2 if self.setting == "c" else TABLE_1
        listed = isinstance(windows, list | tuple)
        if not listed or not windows or len(set(windows)) < len(windows):
            raise InputError(f"{KEY}.windows={windows}: must be a list of different numbers, at least one")
        return sorted(whole(f"{KEY}.windows", window, 1, max(tables)) for window in windows)

    def law(self, window: int) -> DynamicalSystemLaw:
        """Law by which weights are judged."""
        task = DynamicalSystem(
            self.dim, self.length, window, self.setting, systems=self.drawn_once, prefix=KEY
        )
        return task.law([0])

    def train(self, runner: Runner, window: int) -> RunRecord:
        tuned = (TABLE_2 if self.setting == "c" else TABLE_1)[window]
        warmup = max(1, int(WARMUP * self.steps))
        settings: dict[str, Any] = {
            "seeds": list(self.seeds),
            "callbacks.heatmaps.count": 0,  # a run asked for by itself has its pictures
            "task.setting": self.setting,
            "task.dim": self.dim,
            "task.length": self.length,
            "task.window": window,
            "task.systems": None if self.fresh else self.drawn_once,
            "model.init_std": 1e-5 / (window + 1) ** 0.5,  # Xavier normal, gain 1e-5
            "optimizer.lr": tuned.lr if self.lr is None else self.lr,
            "optimizer.betas": list(tuned.betas),
            "optimizer.weight_decay": tuned.weight_decay,
            "optimizer.schedule.warmup": warmup,
            "optimizer.schedule.decay": 9 * warmup,
            "optimizer.schedule.min_lr": tuned.min_lr,
            "train.steps": self.steps,
            "train.log_every": max(1, self.steps // 50),
        }
        return runner.train("lds/ar", settings | self._drawing(tuned))

    def _drawing(self, tuned: WindowSettings) -> dict[str, Any]:
        if not self.fresh:
            population = {"train.estimator": "population", "train.batch": None}
            return {**population, "train.steps_per_batch": self.steps, "trainer.precision": "64-true"}
        sampled = {"train.estimator": "sampled", "train.batch": tuned.batch}
        return {**sampled, "train.steps_per_batch": 1, "trainer.precision": "32-true"}
