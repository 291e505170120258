"""giannou, section 6: powers of A after l layers of linear attention, 3^l, against Newton's of order 2 and 3.

Polynomials in one number a, an eigenvalue of a symmetric A, with integer coefficients: nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.giannou.support.polynomials import (
    attention_degrees,
    best_residual,
    newton_degrees,
    newton_residual,
    relative,
    residual_by_roots,
    residual_by_steps,
)
from icl.checks.numbers import exact, finding
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import real
from icl.theory.quadratic import EPSILON

REMARKS = [
    "The degrees are as section 6 counts them: 3^l after l layers, 2^{t+1} - 1 and 2 * 3^t - 1 after t "
    "steps of order 2 and 3. They do not carry the conclusion that linear attention will not outperform "
    "order 3: Newton's iterates are not the best of their degree. On eigenvalues of ratio kappa the best "
    "polynomial of degree 3^l has a residual far below that of order 3, whose degree is twice as high: "
    "best_residual against residual_order3."
]


@dataclass(eq=False)
class Degrees:
    """Settings: most layers or steps, ratio of the extreme eigenvalues of A, seed of the random weights."""

    reference = "Section 6, linear regression"
    claim = "The highest power of A is 3^l after l layers: at least that of order 2, below that of order 3."

    layers: int = integer(4, 1, 6)
    condition: float = 10.0
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        self.condition = real("check.condition", self.condition, 1, open_low=True)

    def measure(self) -> Finding:
        counts, kappa = range(1, self.layers + 1), self.condition
        attention = attention_degrees(self.layers, self.seed)
        second, third, fourth = (newton_degrees(order, self.layers) for order in (2, 3, 4))
        degrees = list(zip(counts, attention, second, third, strict=True))
        wrong = sum((a, b, c) != (3**t, 2 ** (t + 1) - 1, 2 * 3**t - 1) for t, a, b, c in degrees)
        wrong += sum(not ((a == b if t == 1 else a > b) and a < c) for t, a, b, c in degrees)
        best = [best_residual(3**t, kappa) for t in counts]
        residuals = {order: [newton_residual(order, t, kappa) for t in counts] for order in (2, 3)}
        off = [relative(r, residual_by_roots(3**t + 1, kappa)) for t, r in zip(counts, best, strict=True)]
        for order, of_order in residuals.items():
            off += [relative(r, residual_by_steps(order, t, kappa)) for t, r in enumerate(of_order, 1)]
        # Chebyshev's points a_j, of n, are known to 2^-52 (kappa + 1), and sum_j (kappa + 1) / (a_j - 1) is
        # n^2 (kappa + 1) / (kappa - 1); the power 3^t of a number multiplies its rounding by 3^t.
        most = 3**self.layers + 1
        rounding = EPSILON * (4 * most**2 * ((kappa + 1) / (kappa - 1)) + 16 * most)
        control = sum(a != b for a, b in zip(third, fourth, strict=True))
        return finding(
            [
                exact(mismatches=wrong).at_most(0.5, "degrees are counted in integers"),
                exact(residuals_off=max(off)).at_most(rounding, "rounding of powers, and of roots"),
                exact(
                    layers=list(counts),
                    degree_attention=attention,
                    degree_order2=second,
                    degree_order3=third,
                    best_residual=best,
                    residual_order2=residuals[2],
                    residual_order3=residuals[3],
                ),
            ],
            Control("steps at which order 4 does not have order 3's degree", control, control > 0.5),
            remarks=REMARKS,
        )
