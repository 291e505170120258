"""giannou, section 6: powers of A after l layers of linear attention against Newton's of order 2 and 3."""

from dataclasses import dataclass
from random import Random

from icl.checks.statement import Measured, Statement, setting
from icl.theory.giannou.polynomials import attention_degrees, best_residual, newton_degrees, newton_residual
from icl.theory.rationals import rational


@dataclass
class Degrees(Statement):
    layers: int = setting(4, 1, 6, most=6, beyond="residuals are fractions of ten thousand digits")
    condition: float = setting(10.0, 1.000001, 1000.0)  # ratio of the extreme eigenvalues of A
    seed: int = setting(0, 0)  # of the weights

    paper, where = "giannou", "Section 6, linear regression"
    title = "Degrees of linear attention and of Newton's method"
    law = "A symmetric, eigenvalues from 1 to the condition; one head with positive weights in each layer"
    claim = (
        "After l layers of linear attention the highest power of A is 3^l. This is at least the degree of "
        "l steps of Newton's iteration of order 2 and below the degree of l steps of order 3."
    )
    quote = (
        '"in the second layer the higher-order term can be up to power of 9; in contrast the second-order '
        "Newton's iteration can reach up to order 7\" (Section 6)"
    )
    formula = r"2^{l+1} - 1 \le 3^l < 2 \cdot 3^l - 1"

    def measure(self, m: Measured) -> None:
        counts, kappa = range(1, self.layers + 1), rational(self.condition)
        attention = attention_degrees(self.layers, Random(self.seed))
        second, third, fourth = (newton_degrees(order, self.layers) for order in (2, 3, 4))
        rows = list(zip(counts, attention, second, third, strict=True))
        off = [abs(a - 3**t) + abs(b - (2 ** (t + 1) - 1)) + abs(c - (2 * 3**t - 1)) for t, a, b, c in rows]
        m.zero("mismatches", sum(off), "sum of the differences of all degrees from those stated")
        m.control("the same of order 4 for order 3, at one step", fourth[0] - third[0], of="mismatches")
        ordered = all(b <= a < c and (t == 1 or b < a) for t, a, b, c in rows)
        m.true("ordered", ordered, "2 is passed from the second layer on, 3 never reached")
        best = [best_residual(3**t, kappa) for t in counts]
        m.number("best_residual", best, "least residual of any polynomial of degree 3^l, by l")
        found = [newton_residual(3, t, kappa) for t in counts]
        m.number("residual_order3", found, "residual of Newton's iteration of order 3, by step")
        m.note("Newton's iterates are not the best polynomials of their degree: a degree bounds no residual.")
