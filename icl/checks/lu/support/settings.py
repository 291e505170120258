"""Settings of the checks of pretrained linear attention: sizes relative to the number of covariates d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icl.checks.settings import integer, validate
from icl.errors import InputError, real, whole
from icl.theory.lu.limits import Limit

MAX_DIM = 128
MAX_RATIO = 1e4
MAX_TAU = 100.0
LONG = "the draws take days"


@dataclass(eq=False)
class Ratios:
    """l = alpha d examples, k = kappa d tasks, noise of variance rho."""

    alpha: float = 10.0
    kappa: float = 0.5
    rho: float = 0.01
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        self.alpha = ratio("check.alpha", self.alpha, MAX_RATIO)
        self.kappa = ratio("check.kappa", self.kappa, MAX_RATIO)
        self.rho = real("check.rho", self.rho, 0)


@dataclass(eq=False)
class RatiosWithPrompts(Ratios):
    """Settings: of Ratios; n = tau d^2 pretraining prompts."""

    tau: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tau = ratio("check.tau", self.tau, MAX_TAU)

    @property
    def limit(self) -> Limit:
        return Limit(self.alpha, self.kappa, self.tau, self.rho)


def ratio(key: str, value: Any, high: float) -> float:
    """Return `value` as a number above 0 and at most `high`."""
    if real(key, value, 0, open_low=True) > high:
        raise InputError(f"{key}={value}: must be at most {high:g}; beyond, {LONG}")
    return float(value)


def rising(key: str, given: Any, low: int, high: int, least: int = 1) -> list[int]:
    """Return at least so many whole numbers in rising order."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < least:
        raise InputError(f"{key}={given}: must be a list of at least {least} whole numbers")
    numbers = [whole(key, number, low, high) for number in given]
    if sorted(set(numbers)) != numbers:
        raise InputError(f"{key}={numbers}: must be in rising order")
    return numbers
