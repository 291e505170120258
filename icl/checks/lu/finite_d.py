"""lu: the errors' correction of order 1/d, by leaving one prompt out, against simulated pretraining.

C dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icl.checks.lu.sizes import LONG, MAX_DIM, Means, Pretrained, means_of, require_examples
from icl.checks.statement import UNREFUTED, Measured, Sample, setting
from icl.errors import rising
from icl.models.lu.pretraining import Pretraining
from icl.theory.lu.leave_one_out import error
from icl.theory.lu.limits import plotted

NODES = 16  # of the equations' rules; what half of them change is taken for their error


@dataclass
class FiniteD(Pretrained):
    """alpha, tau, noise, ridge lambda, a new task in every prompt; dimensions, `draws` at the largest."""

    tau: float = setting(2.0, 1e-4, 20.0, most=100.0, beyond=LONG)
    ridge: float = setting(0.001, 1e-6, 10.0)
    dims: Sequence[int] = (12, 16, 24, 32)
    draws: int = setting(85, 10, 400, most=10**6, beyond="they take days")

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

    def expected(self) -> str:
        """Return UNREFUTED at other laws, whose draws were not counted: the coefficient may be small."""
        return super().expected() if self.at_default else UNREFUTED

    def measure(self, m: Measured) -> None:
        sizes = {d: Pretraining.at(d, self.alpha, np.inf, self.tau, self.rho, self.ridge) for d in self.dims}
        require_examples(sizes[self.dims[-1]])
        [errors] = means_of(self.dims, self.draws, lambda d, rng: sizes[d].errors(rng)[:1], self.seed)
        limits_C = np.array([plotted(*at.ratios, self.ridge)[0] for at in sizes.values()])
        fine_C, coarse_C = (
            np.array(
                [error(d, at.examples, at.prompts, self.rho, self.ridge, nodes) for d, at in sizes.items()]
            )
            for nodes in (NODES, NODES // 2)
        )
        left = coefficient(errors, fine_C, np.abs(fine_C - coarse_C))
        whole = coefficient(errors, limits_C, 0 * limits_C)
        m.zero("left", left, "coefficient of 1/d of the simulated error less that of the equations")
        m.control("the same coefficient without the equations: of the error less its limit", whole, of="left")
        m.number("coefficient", whole, "coefficient of 1/d of the simulated error less its limit")


def coefficient(errors: Means, value_C: np.ndarray, unsure_C: np.ndarray) -> Sample:
    """Return the constant of a line in 1/d fitted to d times the difference."""
    dims_C = np.array(errors.dims)
    both_C = dims_C * np.hypot(errors.stderr_C, unsure_C)
    return Sample(*Means(errors.dims, dims_C * (errors.mean_C - value_C), both_C).at_infinity(1))
