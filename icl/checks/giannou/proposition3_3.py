"""giannou, Proposition 3.3: how self-concordant the regularised logistic loss is, for points with |a| <= 1.

phi(t) = f(x + t u), |u| = 1: phi'' = mean q c^2 + mu and |phi'''| = |mean q t c^3| with c = <u, a_i>, |c|
<= 1, q = p (1 - p) in (0, 1/4], t = 1 - 2 p = +-sqrt(1 - 4 q). The points (phi'' - mu, |phi'''|) are a
convex hull of (q c^2, q sqrt(1 - 4 q) |c|^3); at given q c^2 the second is largest for |c| = 1, and q
sqrt(1 - 4 q) is concave, so one point a = u repeated is worst, and the ratio's supremum is that of one
variable.
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.giannou.support.concordance import largest_ratio, ratio_of_one_point, supremum_of_ratio
from icl.checks.giannou.support.problems import validate_mu
from icl.checks.numbers import exact, finding, searched
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.random import generator

TOO_LONG = "the search over points takes minutes"

REMARKS = [
    "The proposition makes two claims. By Definition 3.1 the first is |phi'''| <= 2 M (phi'')^{3/2} with "
    "M = 1/sqrt(mu). The second, that f/(4 mu) is standard self-concordant, is the same with M = 1/(2 "
    "sqrt(mu)), and twice as strong. Both are true and neither is sharp: the supremum of |phi'''| / "
    "(phi'')^{3/2} is 2 / (3 sqrt(3) sqrt(mu) (1 + 4 mu)), attained at p (1 - p) = 2 mu / (1 + 12 mu). So "
    "f / (27 mu (1 + 4 mu)^2) is standard self-concordant, and damped Newton on it takes longer steps "
    "than on f / (4 mu).",
]


@dataclass(eq=False)
class Proposition3_3:
    """Settings: mu, size of the random problems searched, their number (`samples`), seed."""

    reference = "Proposition 3.3, Definition 3.1"
    claim = (
        "For |a_i| <= 1 the regularised logistic loss f is self-concordant with M_f = 1/sqrt(mu), and "
        "f/(4 mu) is standard self-concordant."
    )

    mu: float = 0.1
    dim: int = integer(3, 1, 20, TOO_LONG)
    context: int = integer(6, 1, 100, TOO_LONG)
    seed: int = integer(0, 0)
    samples: int = integer(8, 1, 1000)

    def __post_init__(self) -> None:
        validate(self)
        self.mu = validate_mu(self.mu)

    def measure(self) -> Finding:
        q = 2 * self.mu / (1 + 12 * self.mu)
        supremum, attained = supremum_of_ratio(self.mu), ratio_of_one_point(q, self.mu)
        largest = max(self._search(i) for i in range(self.samples))
        standard = 1 / self.mu**0.5
        rounding, source = ROUNDING * supremum, "rounding: 64 * 2^-52 of the supremum"
        below = 0.99 * supremum
        return finding(
            [
                exact(supremum=supremum)
                .means("supremum of |phi'''| / (phi'')^(3/2) over all points and directions")
                .compared_by("off_closed_form", "the ratio at one repeated point")
                .at_most(
                    standard, "the claim for f/(4 mu), 2 M with M = 1/(2 sqrt(mu))", half_width=rounding
                ),
                exact(off_closed_form=abs(attained - supremum))
                .means("difference of the supremum from its value at one repeated point")
                .compared_by("off_closed_form", "closed form, and ratio at one repeated point")
                .at_most(rounding, source),
                searched(largest_excess=max(largest, attained) - supremum)
                .means("amount by which a search exceeds the supremum")
                .at_most(rounding, source),
                searched(largest_found_by_search=largest).means(
                    "largest ratio found by a search over problems"
                ),
                exact(supremum_times_sqrt_mu=supremum * self.mu**0.5, attained=attained)
                .means(
                    supremum_times_sqrt_mu="supremum times sqrt(mu)", attained="ratio at one repeated point"
                )
                .compared_by("off_closed_form", "closed form, and ratio at one repeated point"),
                exact(claim_M_f=2 / self.mu**0.5, claim_standard=standard)
                .means(
                    claim_M_f="bound 2 M_f of the first claim",
                    claim_standard="bound of the second claim, f/(4 mu) standard self-concordant",
                )
                .by_definition(),
                exact(worst_p_one_minus_p=q)
                .means("p (1 - p) at which the supremum is attained")
                .compared_by("off_closed_form", "the ratio there, which is the supremum"),
            ],
            Control(
                "the largest ratio to a constant of 0.99 times the supremum",
                attained / below,
                attained > below,
            ),
            remarks=REMARKS,
        )

    def _search(self, step: int) -> float:
        rng = generator(self.seed, "search", step)
        return largest_ratio(self.mu, self.context, self.dim, rng)
