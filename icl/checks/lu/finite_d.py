"""lu: the errors' correction of order 1/d, by leaving one prompt out, against simulated pretraining.

C dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icl.checks.lu.support.extrapolation import Means
from icl.checks.lu.support.pretraining import Pretraining
from icl.checks.lu.support.settings import MAX_DIM, MAX_RATIO, MAX_TAU, ratio, rising
from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import integer, validate
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.errors import real
from icl.random import generator
from icl.theory.lu.leave_one_out import LeaveOneOut
from icl.theory.lu.limits import Limit

SOURCE = "a 99.9 % interval of the coefficient: a line in 1/d is fitted to d times the difference"
EQUATIONS = 40_000  # draws of the features, for the equations' expectations
REPEATS = 4  # of these, for their standard error


@dataclass(eq=False)
class FiniteD:
    """alpha, tau, noise rho, ridge lambda, a new task in every prompt; dimensions, `draws` at the largest."""

    alpha: float = 10.0
    tau: float = 2.0
    rho: float = 0.01
    ridge: float = 0.001
    dims: Sequence[int] = (12, 16, 24, 32)
    draws: int = integer(100, 10, 10**6, "they take days")
    seed: int = integer(0, 0)

    reference = "this project, beside lu's limits"
    claim = (
        "This project's equations, which keep the spread of a prompt's leverage, give the error to the order "
        "1/d where every prompt has a new task."
    )

    def __post_init__(self) -> None:
        validate(self)
        self.alpha = ratio("check.alpha", self.alpha, MAX_RATIO)
        self.tau = ratio("check.tau", self.tau, MAX_TAU)
        self.rho = real("check.rho", self.rho, 0)
        self.ridge = real("check.ridge", self.ridge, 0, open_low=True)
        self.dims = rising("check.dims", self.dims, 2, MAX_DIM, 3)

    def measure(self) -> Finding:
        at = (self.alpha, np.inf, self.tau, self.rho)
        limit = Limit(*at).ridge(self.ridge)[0]
        means = Means.of(self.dims, self.draws, lambda d, rng: self._sizes(d).errors(rng)[0], self.seed)
        repeats_CT = np.array([[self._equations(d, i) for i in range(REPEATS)] for d in self.dims])
        error_C = repeats_CT.mean(1)
        its_C = repeats_CT.std(1, ddof=1) / REPEATS**0.5
        left, stderr = self._coefficient(means, error_C, its_C)
        whole, whole_stderr = self._coefficient(means, np.full_like(error_C, limit), 0 * its_C)
        control = abs(whole) / whole_stderr
        return finding(
            [
                sampled(standard_errors_off=abs(left) / stderr)
                .means("coefficient of 1/d of the simulated error less the equations', in standard errors")
                .at_most(QUANTILE, SOURCE),
                sampled(coefficient=whole, coefficient_stderr=whole_stderr).means(
                    "coefficient of 1/d of the simulated error less its limit"
                ),
                sampled(left=left, left_stderr=stderr).means(
                    "coefficient of 1/d of the simulated error less that of the equations"
                ),
                exact(limit=limit)
                .means("limit of the error")
                .in_tests("integrals over the law of Marchenko and Pastur"),
                sampled(by_equations=error_C.tolist(), by_equations_stderr=its_C.tolist()).means(
                    "error by the equations at each dimension, in the order of dims"
                ),
                sampled(by_dim=means.mean_C.tolist(), by_dim_stderr=means.stderr_C.tolist()).means(
                    "mean error at each dimension, in the order of dims"
                ),
            ],
            Control(
                "the same coefficient without the equations, in standard errors", control, control > QUANTILE
            ),
        )

    def _sizes(self, dim: int) -> Pretraining:
        return Pretraining.at(dim, self.alpha, np.inf, self.tau, self.rho, self.ridge)

    def _equations(self, dim: int, repeat: int) -> float:
        sizes = self._sizes(dim)
        equations = LeaveOneOut(dim, sizes.examples, sizes.prompts, self.rho, self.ridge)
        return equations.error(generator(self.seed, "control", repeat), EQUATIONS)

    def _coefficient(self, means: Means, error_C: np.ndarray, its_C: np.ndarray) -> tuple[float, float]:
        dims_C = np.array(means.dims)
        stderr_C = dims_C * np.hypot(means.stderr_C, its_C)
        scaled = replace(means, mean_C=dims_C * (means.mean_C - error_C), stderr_C=stderr_C)
        return scaled.at_infinity(1)
