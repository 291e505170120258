"""giannou, Proposition 3.3: how self-concordant the regularised logistic loss is, for points with |a| <= 1.

phi(t) = f(x + t u), |u| = 1: phi'' = mean q c^2 + mu and |phi'''| = |mean q t c^3| with c = <u, a_i>, |c|
<= 1, q = p (1 - p) in (0, 1/4], t = 1 - 2 p = +-sqrt(1 - 4 q). The points (phi'' - mu, |phi'''|) are a
convex hull of (q c^2, q sqrt(1 - 4 q) |c|^3); at given q c^2 the second is largest for |c| = 1, and q
sqrt(1 - 4 q) is concave, so one point a = u repeated is worst, and the ratio's supremum is that of one
variable.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from icl.checks.giannou.support.problems import regularisation
from icl.checks.rounding import ROUNDING
from icl.checks.settings import in_range
from icl.checks.verdict import Bound, Control, Finding, at_most, combine, decide
from icl.errors import whole
from icl.random import generator

REMARKS = [
    "The proposition makes two claims. |phi'''| <= 2 M (phi'')^{3/2} with M = 1/sqrt(mu) is what "
    "Definition 3.1 makes of the first; f/(4 mu) standard self-concordant is M = 1/(2 sqrt(mu)), twice as "
    "strong. Both hold and neither is sharp: the supremum of |phi'''| / (phi'')^{3/2} is 2 / (3 sqrt(3) "
    "sqrt(mu) (1 + 4 mu)), attained at p (1 - p) = 2 mu / (1 + 12 mu). So f / (27 mu (1 + 4 mu)^2) is "
    "standard already, and damped Newton on it takes longer steps than on f / (4 mu).",
]


class Proposition3_3:
    """Settings: mu, size of the random problems searched, their number (`samples`), seed."""

    reference = "Proposition 3.3, Definition 3.1"
    claim = "For |a_i| <= 1 the regularised logistic loss has M_f = 1/sqrt(mu), and f/(4 mu) is standard."

    def __init__(
        self, mu: float = 0.1, dim: int = 3, context: int = 6, seed: int = 0, samples: int = 8
    ) -> None:
        self.mu = regularisation(mu)
        self.dim = in_range("check.dim", dim, 1, 20, "the search over points takes minutes")
        self.context = in_range("check.context", context, 1, 100, "the search over points takes minutes")
        self.seed, self.samples = whole("check.seed", seed, 0), whole("check.samples", samples, 1, 1000)

    def measure(self) -> Finding:
        q = 2 * self.mu / (1 + 12 * self.mu)
        supremum = supremum_of_ratio(self.mu)
        attained = ratio_of_one_point(q, self.mu)
        searched = [self._searched(i) for i in range(self.samples)]
        rounding, source = ROUNDING * supremum, "rounding: 64 * 2^-52 of the supremum"
        claims = Bound(1 / self.mu**0.5, "f/(4 mu) standard: 2 M with M = 1/(2 sqrt(mu))", "supremum")
        off, excess = abs(attained - supremum), max(max(searched), attained) - supremum
        verdict, bound = combine(
            [
                (decide(supremum, claims.value, rounding), claims),
                at_most("off_closed_form", off, rounding, source),
                at_most("largest_excess", excess, rounding, source),
            ]
        )
        below = 0.99 * supremum
        return Finding(
            verdict,
            {
                "supremum": supremum,
                "supremum_times_sqrt_mu": supremum * self.mu**0.5,
                "attained": attained,
                "off_closed_form": off,
                "largest_found_by_search": max(searched),
                "largest_excess": excess,
                "claim_M_f": 2 / self.mu**0.5,
                "claim_standard": 1 / self.mu**0.5,
                "worst_p_one_minus_p": q,
            },
            bound,
            Control(
                "a constant of 0.99 times the supremum: largest ratio in its units",
                attained / below,
                attained > below,
            ),
            remarks=REMARKS,
            kinds={"*": "exact", "largest_found_by_search": "searched", "largest_excess": "searched"},
        )

    def _searched(self, step: int) -> float:
        """Largest ratio found from a random start, over points in the unit ball, x and u."""
        N, D = self.context, self.dim
        start = generator(self.seed, "search", step).standard_normal(N * D + 2 * D)

        def negative(theta: np.ndarray) -> float:
            A_ND = theta[: N * D].reshape(N, D)
            A_ND = A_ND / np.maximum(1.0, np.linalg.norm(A_ND, axis=1))[:, None]
            return -ratio(A_ND, theta[N * D : N * D + D], theta[N * D + D :], self.mu)

        return -float(minimize(negative, start, method="L-BFGS-B", options={"maxiter": 60}).fun)


def ratio(A_ND: np.ndarray, x_D: np.ndarray, u_D: np.ndarray, mu: float) -> float:
    """|phi'''| / (phi'')^{3/2} at x along u; labels do not matter, as p (1 - p) is even."""
    z_N, c_N = A_ND @ x_D, A_ND @ u_D / np.linalg.norm(u_D)
    t_N = np.tanh(z_N / 2)
    q_N = (1 - t_N**2) / 4
    return float(abs(np.mean(q_N * t_N * c_N**3)) / (np.mean(q_N * c_N**2) + mu) ** 1.5)


def ratio_of_one_point(q: float, mu: float) -> float:
    """The ratio at a single unit point with p (1 - p) = q, through x itself."""
    x = 2 * np.arctanh(np.sqrt(1 - 4 * q))
    one = np.ones((1, 1))
    return ratio(one, np.full(1, x), np.ones(1), mu)


def supremum_of_ratio(mu: float) -> float:
    """max_q q sqrt(1 - 4 q) / (q + mu)^{3/2}, which is at q = 2 mu / (1 + 12 mu)."""
    return float(2 / (3 * np.sqrt(3) * np.sqrt(mu) * (1 + 4 * mu)))
