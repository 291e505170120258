"""Learning-rate schedules: a rate is a function of the step, so a resumed run needs no scheduler state. All
replicas share one; each has its own base rate, `optimizer.lr`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icl.errors import InputError, real, reals, whole


class Schedule(Protocol):
    def rate(self, base: float, step: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    def rate(self, base: float, step: int) -> float:
        return base


@dataclass(frozen=True)
class StepHalving:
    """The rate halves every `every` steps (the ahn paper's notebooks)."""

    every: int = 2000

    def __post_init__(self) -> None:
        whole("schedule.every", self.every, 1)

    def rate(self, base: float, step: int) -> float:
        return base * 0.5 ** (step // self.every)


@dataclass(frozen=True)
class WarmupCosine:
    """Linear warm-up over `warmup` steps, then a cosine from the base rate to `min_lr` over `decay` steps;
    all of it again every `every` steps, if given, each time with its own of `factors` of the base rate."""

    warmup: int = 800
    decay: int = 7200
    min_lr: float = 0.0
    every: int | None = None
    factors: Sequence[float] | None = None

    def __post_init__(self) -> None:
        whole("schedule.warmup", self.warmup, 0)
        whole("schedule.decay", self.decay, 1)
        real("schedule.min_lr", self.min_lr, 0)
        if self.every is not None:
            whole("schedule.every", self.every, 1)
        if self.factors is not None:
            if self.every is None:
                raise InputError(f"schedule.factors={self.factors}: needs schedule.every")
            count = len(self.factors) if isinstance(self.factors, Sequence) else 1
            reals("schedule.factors", self.factors, count, 0, open_low=True)

    def rate(self, base: float, step: int) -> float:
        if base < self.min_lr:
            raise InputError(f"schedule.min_lr={self.min_lr}: must be at most optimizer.lr={base}")
        if self.every is not None:
            if self.factors is not None:
                base *= self.factors[min(step // self.every, len(self.factors) - 1)]
            step %= self.every
        if step < self.warmup:
            return base * (step + 1) / self.warmup
        done = min((step - self.warmup) / self.decay, 1.0)
        return self.min_lr + (base - self.min_lr) * (1 + math.cos(math.pi * done)) / 2
