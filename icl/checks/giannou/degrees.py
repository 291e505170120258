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
    "The degrees are those of section 6: 3^l after l layers, 2^{t+1} - 1 and 2 * 3^t - 1 after t steps of "
    "order 2 and 3. They do not imply that linear attention cannot outperform order 3, because Newton's "
    "iterates are not the best polynomials of their degree. On eigenvalues with ratio kappa, the best "
    "polynomial of degree 3^l has a far smaller residual than order 3, whose degree is twice as high "
    "(best_residual, residual_order3)."
]


@dataclass(eq=False)
class Degrees:
    """Settings: most layers or steps, ratio of the extreme eigenvalues of A, seed of the random weights."""

    reference = "Section 6, linear regression"
    claim = (
        "After l layers of linear attention the highest power of A is 3^l. This is at least the degree of "
        "l steps of Newton's iteration of order 2 and below the degree of l steps of order 3."
    )

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
                exact(mismatches=wrong)
                .means("number of wrong degrees and of violated inequalities")
                .compared_by("mismatches", "polynomials multiplied out, and their stated degrees")
                .at_most(0.5, "degrees are counted in integers"),
                exact(residuals_off=max(off))
                .means("largest relative difference of the residuals from another computation")
                .compared_by("residuals_off", "closed forms, and roots and steps")
                .at_most(rounding, "rounding of powers, and of roots"),
                exact(layers=list(counts)).means("numbers of layers or steps").by_definition(),
                exact(degree_attention=attention, degree_order2=second, degree_order3=third)
                .means(
                    degree_attention="highest power of A, by layers of linear attention",
                    degree_order2="highest power of A, by Newton steps of order 2",
                    degree_order3="highest power of A, by Newton steps of order 3",
                )
                .compared_by("mismatches", "the stated degrees"),
                exact(best_residual=best, residual_order2=residuals[2], residual_order3=residuals[3])
                .means(
                    best_residual="least residual of any polynomial of degree 3^l, by l",
                    residual_order2="residual of Newton's iteration of order 2, by step",
                    residual_order3="residual of Newton's iteration of order 3, by step",
                )
                .compared_by("residuals_off", "roots of Chebyshev's polynomial, and steps"),
            ],
            Control(
                "the number of steps at which order 4 has another degree than order 3", control, control > 0.5
            ),
            remarks=REMARKS,
        )
