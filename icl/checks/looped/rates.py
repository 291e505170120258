"""looped: how fast the risk falls with the loops, for long prompts in large dimension: 4, 2 and 1 to the L.

No antisymmetric matrix has a rate below 2: docs/notes/looped.md, Theorem 5.
"""

from dataclasses import dataclass
from math import comb

from flint import fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.theory.looped.limit import block_rate, gaussian_turn, semicircle, separate
from icl.theory.looped.long_prompts import goe_moment
from icl.theory.rationals import rational
from icl.theory.roots import evaluate, real_roots


@dataclass
class Rates(Statement):
    dim: int = setting(20, 4, 40, most=100, beyond="nothing new is to be seen")
    layers: int = setting(6, 3, 8, most=8, beyond="moments of the Gaussian matrix take minutes")
    speed: float = setting(0.55, 1e-12)  # of a rotation by 90 degrees in every plane, squared

    paper, origin = "looped", "icl"
    where, title = "statement 12", "Three rates for long prompts in large dimension"
    law = "n^L f / d^(L + 1) as n grows, then d; B / sqrt(n) is added to the best multiple of Sigma^-1"
    claim = (
        "Equal steps leave Catalan's number C_L, rate 4; a Gaussian antisymmetric B at most 2^L, rate 2; "
        "layers that may differ leave 1."
    )
    formula = r"(n/d)^L f / d \to C_L,\quad \le 2^L,\quad 1"

    def measure(self, m: Measured) -> None:
        L, d, turned = self.layers, self.dim, gaussian_turn(self.layers)
        moments = [goe_moment((k,)) for k in range(2 * L + 1)]
        catalan, scale = comb(2 * L, L) // (L + 1), fmpq(d) ** (L + 1)
        both = [moments[-1].leading_coefficient() - catalan, turned(1) - catalan]
        m.zero("scalar", both, "leading coefficient in d of E tr X^2L, and pairings without B, less C_L")
        m.control("the first less 4^L", moments[-1].leading_coefficient() - 4**L, of="scalar")
        m.zero("turned", turned(0) - 2**L, "pairings that do not cross at q = 0, less 2^L")
        m.control("the same without B, at q = 1", turned(1) - 2**L, of="turned")
        m.zero("separate", separate(semicircle(2 * L + 1), L) - 1, "least risk of separate layers, less 1")
        about = "rate of a rotation by 90 degrees in every plane, at this squared speed"
        m.above("block_rate", block_rate(rational(self.speed)), 2, about)
        about = "rate of separate layers less 2: what the bound for one layer does not hold for"
        m.control(about, separate(semicircle(3), 1) - 2, of="block_rate", wants="negative")
        m.note("That no antisymmetric B is below is Theorem 5 of docs/notes/looped.md; here is one such B.")
        q = min(real_roots(turned.derivative()), key=lambda x: float(evaluate(turned, x)))
        m.number("least_turned", evaluate(turned, q), "limit at the best size of a Gaussian B")
        m.number("scalar_at_dim", moments[-1](d) / scale, "E tr X^2L over d^(L + 1) at this d")
        exact = separate([moment(d) for moment in moments], L) / scale
        m.number("separate_at_dim", exact, "the same of separate layers")
