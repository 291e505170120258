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
            .means("relative difference of the root from that of a polynomial of degree 4")
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
    """Return the roots e > 0 of 1 - tau + tau ridge / e = e M(e + x*), found otherwise: M solves a quadratic
    equation, and e^4 times it, with M = u / e^2, u = (1 - tau) e + tau ridge, is a polynomial. Its other
    roots belong to the other solution of the quadratic equation."""
    more, x, tau = 1 / limit.kappa, limit.x, limit.tau
    e, u = np.poly1d([1, 0]), np.poly1d([1 - tau, tau * ridge])
    quartic = e**4 - (e + x + 1 - more) * u * e**2 - more * (e + x) * u**2
    found = [complex(z) for z in quartic.roots]
    positive = [z.real for z in found if z.real > 0 and abs(z.imag) < 1e-6 * abs(z)]
    return [e for e in positive if u(e) > 0 and 2 * e * e / u(e) > e + x + 1 - more]
