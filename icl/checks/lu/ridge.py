"""lu: the error on new tasks after pretraining with a ridge against its limit, and the limit's one root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks.lu.support.extrapolation import SimulatedSettings, compared
from icl.checks.numbers import exact
from icl.checks.settings import validate
from icl.checks.verdict import Finding
from icl.errors import real
from icl.theory.lu.limits import Limit

ROOTS = "10^-10, of a root of a polynomial of degree 4 in double precision, relative"


@dataclass(eq=False)
class Ridge(SimulatedSettings):
    """Settings: of SimulatedSettings; `ridge` is lambda."""

    ridge: float = 0.1

    reference = "lu, Figure 1, the panel with a ridge; formula of the published code"
    claim = "As d grows, the error on new tasks tends to the formula with a ridge, whose root is unique."

    def __post_init__(self) -> None:
        super().__post_init__()
        validate(self)
        self.ridge = real("check.ridge", self.ridge, 0, open_low=True)

    def measure(self) -> Finding:
        root, roots = self.limit.effective_ridge(self.ridge), quartic_roots(self.limit, self.ridge)
        off = min((abs(other / root - 1) for other in roots), default=np.inf)
        return compared(
            self.means(old_tasks=False, ridge=self.ridge),
            self.limit.ridge(self.ridge)[0],
            "standard errors from the formula without a ridge",
            self.limit.icl,
            exact(root_error=float(off))
            .means("relative difference of the root from that of a polynomial of degree 4 in M")
            .compared_by("root_error", "bisection, and roots of the polynomial")
            .at_most(1e-10, ROOTS),
            exact(root=root)
            .means("root of the equation that sets the effective ridge")
            .compared_by("root_error", "root of a polynomial of degree 4"),
            exact(roots=len(roots))
            .means("number of positive roots of the polynomial that solve the equation, too")
            .at_most(1, "the equation's left side decreases, so that it has one root"),
        )


def quartic_roots(limit: Limit, ridge: float) -> list[float]:
    """Return the roots e > 0 of 1 - tau + tau ridge / e = e M(e + x*), found otherwise, by their M > 0. The
    quadratic equation of M gives e = N / D, D = M (1 + M / kappa), N = 1 + M / kappa - M - x* D, and with it
    N^2 - (1 - tau) (1 + M / kappa) N - tau ridge M (1 + M / kappa)^2 = 0. Given M, the equation is one of
    degree 2 in e, with a root of either sign; N / D is one of them."""
    more, x, tau = 1 / limit.kappa, limit.x, limit.tau
    M, rest = np.poly1d([1, 0]), np.poly1d([more, 1])
    N = rest - M - x * M * rest
    polynomial = N * N - (1 - tau) * rest * N - tau * ridge * M * rest * rest
    found = []
    for root in polynomial.roots:
        m = float(root.real)
        if m > 0 and abs(root.imag) < 1e-9 * m:
            middle, half = 1 - tau, np.sqrt((1 - tau) ** 2 + 4 * m * tau * ridge)
            e = 2 * tau * ridge / (half - middle) if middle < 0 else (half + middle) / (2 * m)
            other = (middle - half) / (2 * m)
            at = N(m) / (m * rest(m))
            found += [float(e)] if abs(at - e) < abs(at - other) else []
    return found
