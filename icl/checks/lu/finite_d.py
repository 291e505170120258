"""lu: the errors' correction of order 1/d, by leaving one prompt out, against simulated pretraining.

C dimensions, T repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icl.checks.lu.sizes import MAX_DIM, Simulated, means_of
from icl.checks.statement import Measured, Sample, setting
from icl.errors import rising
from icl.models.lu.pretraining import Pretraining
from icl.random import generator
from icl.theory.lu.extrapolation import Means
from icl.theory.lu.leave_one_out import LeaveOneOut
from icl.theory.lu.limits import plotted

EQUATIONS = 40_000  # draws of the features, for the equations' expectations
REPEATS = 4  # of these, for their standard error


@dataclass
class FiniteD(Simulated):
    """alpha, tau, noise, ridge lambda, a new task in every prompt; dimensions, `draws` at the largest."""

    tau: float = setting(2.0, 1e-4, 20.0, most=100.0, beyond="the draws take days")
    ridge: float = setting(0.001, 1e-6, 10.0)
    dims: Sequence[int] = (12, 16, 24, 32)
    draws: int = setting(100, 10, 400, most=10**6, beyond="they take days")

    where, origin = "this project, beside the limits", "icl"
    title = "The correction of order 1/d"
    claim = (
        "This project's equations, which keep the spread of a prompt's leverage, give the error to the order "
        "1/d where every prompt has a new task."
    )
    formula = r"e(d) = e(\infty) + c / d + O(d^{-2})"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dims = rising("check.dims", self.dims, 2, MAX_DIM, 3)

    def measure(self, m: Measured) -> None:
        sizes = {d: Pretraining.at(d, self.alpha, np.inf, self.tau, self.rho, self.ridge) for d in self.dims}
        errors = means_of(self.dims, self.draws, lambda d, rng: sizes[d].errors(rng)[0], self.seed)
        by_TC = np.array([[self._equations(sizes[d], i) for d in self.dims] for i in range(REPEATS)])
        equations = Means(self.dims, by_TC.mean(0), by_TC.std(0, ddof=1) / REPEATS**0.5)
        at_sizes = [plotted(*sizes[d].ratios, self.ridge)[0] for d in self.dims]
        limits = Means(self.dims, np.array(at_sizes), np.zeros(len(self.dims)))
        left, whole = coefficient(errors, equations), coefficient(errors, limits)
        m.zero("left", left, "coefficient of 1/d of the simulated error less that of the equations")
        m.control("the same coefficient without the equations: of the error less its limit", whole, of="left")
        m.number("coefficient", whole, "coefficient of 1/d of the simulated error less its limit")

    def _equations(self, sizes: Pretraining, repeat: int) -> float:
        equations = LeaveOneOut(sizes.dim, sizes.examples, sizes.prompts, self.rho, self.ridge)
        return equations.error(generator(self.seed, "control", repeat), EQUATIONS)


def coefficient(errors: Means, other: Means) -> Sample:
    """Return the constant of a line in 1/d fitted to d times the difference."""
    dims_C = np.array(errors.dims)
    both_C = dims_C * np.hypot(errors.stderr_C, other.stderr_C)
    scaled = replace(errors, mean_C=dims_C * (errors.mean_C - other.mean_C), stderr_C=both_C)
    return Sample(*scaled.at_infinity(1))
