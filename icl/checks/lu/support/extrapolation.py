"""Errors of pretraining that is simulated at several d, extrapolated to infinitely many covariates.

C dimensions, O order of the polynomial in 1/d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from icl.checks.lu.support.pretraining import Array, Pretraining
from icl.checks.lu.support.settings import MAX_DIM, RatiosWithPrompts, rising
from icl.checks.numbers import Numbers, exact, finding, sampled
from icl.checks.settings import integer
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.errors import InputError
from icl.progress import track
from icl.random import generator

ORDER = 2  # 1/d and 1/d^2
NEAR = 0.1  # of tau = 1, where the error diverges and no polynomial in 1/d describes it
SOURCE = "a 99.9 % interval of the polynomial in 1/d at 0"
MISFIT = "a 99.9 % interval: whether a polynomial of order 2 describes the means at all"


@dataclass(frozen=True, eq=False)
class Means:
    """Mean errors by dimension, with standard errors."""

    dims: Sequence[int]
    mean_C: Array
    stderr_C: Array

    @classmethod
    def of(
        cls, dims: Sequence[int], draws: int, once: Callable[[int, np.random.Generator], float], seed: int
    ) -> Means:
        """Average `once(dim, rng)`, `draws` times at the largest d and more often at smaller ones, since an
        error's standard deviation is about proportional to 1/d."""
        counts = [draws * round((dims[-1] / d) ** 2) for d in dims]
        order = [d for d, count in zip(dims, counts, strict=True) for _ in range(count)]
        streams = {d: generator(seed, "check", d) for d in dims}
        drawn: dict[int, list[float]] = {d: [] for d in dims}
        for d in track(order, "draws", len(order)):
            drawn[d].append(once(d, streams[d]))
        error_CT = [np.array(drawn[d]) for d in dims]
        return cls(
            dims,
            np.array([error_T.mean() for error_T in error_CT]),
            np.array([error_T.std(ddof=1) / len(error_T) ** 0.5 for error_T in error_CT]),
        )

    def at_infinity(self, order: int = ORDER) -> tuple[float, float]:
        """Return the constant of the polynomial in 1/d fitted by weighted least squares, and its error."""
        weights_OC = np.linalg.pinv(self._design(order) / self.stderr_C[:, None])
        scaled_C = self.mean_C / self.stderr_C
        return float(weights_OC[0] @ scaled_C), float(np.linalg.norm(weights_OC[0]))

    @property
    def misfit(self) -> float:
        """Return the part of the means that no polynomial of order 2 describes, in standard errors."""
        design_CO, scaled_C = self._design(ORDER) / self.stderr_C[:, None], self.mean_C / self.stderr_C
        rest_C = scaled_C - design_CO @ np.linalg.lstsq(design_CO, scaled_C)[0]
        free = len(self.dims) - ORDER - 1
        return float(np.sqrt(rest_C @ rest_C / free)) if free else 0.0

    def _design(self, order: int) -> Array:
        return np.vander(1 / np.array(self.dims), order + 1, increasing=True)


@dataclass(eq=False)
class SimulatedSettings(RatiosWithPrompts):
    """Dimensions at which pretraining is simulated, and `draws` at the largest of them."""

    dims: Sequence[int] = (16, 24, 32, 48)
    draws: int = integer(100, 10, 10**6, "they take days")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dims = rising("check.dims", self.dims, 2, MAX_DIM, ORDER + 1)
        if abs(self.tau - 1) < NEAR:
            raise InputError(
                f"check.tau={self.tau}: must be {NEAR:g} away from 1; nearer, errors at these d say nothing"
            )

    def means(self, old_tasks: bool, ridge: float = 0.0) -> Means:
        """Simulate e_IDG, or e_ICL."""
        at = (self.alpha, self.kappa, self.tau, self.rho, ridge)

        def once(dim: int, rng: np.random.Generator) -> float:
            return Pretraining.at(dim, *at).errors(rng)[old_tasks]

        return Means.of(self.dims, self.draws, once, self.seed)


def compared(means: Means, formula: float, control: str, other: float, *more: Numbers) -> Finding:
    """Return whether the formula is the means' limit. They refute it only where it is off by more than the
    extrapolation moved the mean of the largest d: else a polynomial of higher order may be what misses."""
    value, stderr = means.at_infinity()
    off = abs(value - formula) / stderr
    moved = abs(means.mean_C[-1] - value) / stderr
    verdict = "holds" if off <= QUANTILE else "fails" if off > QUANTILE + moved else "undecided"
    of_control = abs(value - other) / stderr
    return finding(
        [
            sampled(standard_errors_off=off)
            .means("deviation of the extrapolated error from the formula, in standard errors")
            .judged(verdict, "<", QUANTILE, SOURCE)
            .provided(
                sampled(misfit=means.misfit)
                .means("distance of the means from a polynomial of order 2 in 1/d, in standard errors")
                .at_most(QUANTILE, MISFIT, otherwise="undecided")
            ),
            exact(formula=formula)
            .means("limit of the error, by the formula")
            .compared_by("standard_errors_off", "simulated pretraining, extrapolated in 1/d"),
            sampled(extrapolated=value, extrapolated_stderr=stderr).means(
                "constant of the polynomial in 1/d that is fitted to the mean errors"
            ),
            sampled(by_dim=means.mean_C.tolist(), by_dim_stderr=means.stderr_C.tolist()).means(
                "mean error at each dimension, in the order of dims"
            ),
            *more,
        ],
        Control(control, of_control, of_control > QUANTILE),
    )
