"""lds, the best single head on AR(s) tokens for s >= 2, of pattern (13) or not: a statement of this project.

Section 4 leaves it open, and what more heads would gain.

Over X_k = sym(b a_k^T) the risk is a convex form: its least value bounds any number of heads. Heads are
searched over b alone, a exact, and what a search finds is no proof. Branch and bound over b is one
(icl.theory.lds.single_head_bound): that no head is below the best head of (13) by more than PROVED of its
risk, or that all heads of (13) are above a head that was found.
The law of y is that of (-1)^t y_t, so to a b on the entries of one parity belong keys of pattern (13) or of
the other checkerboard: (13) is b on the parity of s + 1.

S pairs of token entries, K = s query entries, P = s + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.lds.support import evidence
from icl.checks.lds.support.population import CONFIDENCE, Population, require_systems
from icl.checks.lds.support.sequences import Windows
from icl.checks.lds.support.single_heads import SUPPORT, BestHeads
from icl.checks.numbers import exact, finding, of_kind
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.theory.lds.single_head_bound import HeadsBelow, heads_below
from icl.theory.quadratic import EPSILON

PROVED = 1e-9  # of the risk: what branch and bound leaves open
SCAN = "a scan of the directions of b"
DECIDES = 1e-6
GAP = "one millionth of the risk: a lower bound for every head that a head of (13) attains"
MEANINGS = {
    "best_single_head": "least risk found for one head",
    "best_of_pattern": "least risk found for one head of pattern (13)",
    "best_of_other_checkerboard": "least risk found for one head of the other checkerboard",
    "off_support": "largest entry of the best head outside (13), as a share of the largest of its matrix",
    "two_heads": "least risk found for two heads",
    "gain_of_second_head": "relative decrease of the risk by a second head",
    "excess_over_bound": "relative excess of one head over the convex bound for any number of heads",
    "two_heads_excess_over_bound": "relative excess of two heads over that bound",
    "hessian_smallest": "smallest eigenvalues of the Hessian at the best head, as shares of the largest",
    "W_V_last_column": "last column of W_V of the best head",
    "W_QK": "rows of W_QK of the best head",
    "pattern_W_V_last_column": "last column of W_V of the best head of (13)",
    "pattern_W_QK": "rows of W_QK of the best head of (13)",
    "values_of_restarts": "risks at which the starts for one head end",
}


@dataclass(eq=False)
class OptimumS(Windows):
    """Settings: setting, window s (2 to 5), length T, dim, seed, samples (drawn systems in c and d), restarts
    of each search, boxes of b that branch and bound may use."""

    reference = "icl, beside section 4, eqs. (11) and (13), and section 6, first limitation"
    claim = (
        "This project's statement: for s >= 2 the best single head of linear attention on AR(s) tokens "
        "has pattern (13)."
    )

    window: int = integer(2, 2, 5, "the searches take minutes")
    samples: int = 4000
    restarts: int = search_starts(6)
    boxes: int = integer(50_000, 1, 100_000_000, "branch and bound takes days")

    def __post_init__(self) -> None:
        if self.window == 1:
            raise InputError("check.window=1: is Theorem 4.1's (lds/theorem4_1); this check is about s >= 2")
        super().__post_init__()
        require_systems(self.samples, self.length)

    def measure(self) -> Finding:
        population = Population(self.law, self.samples, self.seed)
        risk, bound = population.risk, population.risk.convex_bound()
        heads = BestHeads.search(population, self.restarts, self.seed)
        excess, rounding = heads.excess, 2 * bound.rounding + 64 * EPSILON * risk.constant
        least, boxes, refuted = bound.value, 0, False
        if excess > rounding:
            # counted from either: that all of (13) are above the middle
            below = self._below(heads, heads.single.value + excess / 2, of_pattern=True)
            refuted, boxes = population.exact and below.proved, below.boxes
        elif heads.pattern.value * (1 - DECIDES) > bound.value:
            level = heads.pattern.value * (1 - PROVED)
            below = self._below(heads, level)
            least, boxes = level if below.proved else least, below.boxes
        gap = 1 - least / heads.pattern.value
        verdict = "fails" if refuted else "holds" if population.exact and gap <= DECIDES else "undecided"
        source = (
            "rounding of two least values and of a risk"
            if population.exact
            else "rounding; the drawn systems add a 99.9 % interval of +- "
            f"{CONFIDENCE * heads.excess_stderr:.2g}"
        )
        found = "searched" if population.exact else "sampled"
        return finding(
            [
                exact(certified_gap=gap)
                .means("share by which a lower bound for every head is below the best head of (13)")
                .in_tests(SCAN)
                .at_most(DECIDES, GAP, otherwise="undecided")
                .decides_only_if(population.exact),
                of_kind(found, pattern_excess=excess)
                .means("risk of the best head of (13) found minus the risk of the best head found")
                .judged("holds" if excess <= rounding else verdict, "<", rounding, source),
                evidence.grid_error(self.law, self.seed),
                evidence.means_error(self.law, self.seed) if self.law.has_independent_modes else exact(),
                of_kind(
                    population.kind,
                    lower_bound=least,
                    boxes=boxes,
                )
                .means(
                    lower_bound="proved lower bound of the risk for every single head",
                    boxes="number of boxes of b that branch and bound took",
                )
                .in_tests(SCAN),
                of_kind(population.kind, convex_bound=bound.value, zero_risk=risk.constant)
                .means(
                    convex_bound="least value of the convex form, a lower bound for any number of heads",
                    zero_risk="risk of the prediction 0",
                )
                .compared_by("grid_error", "moments by Gauss rules over tokens"),
                population.condition(),
                of_kind(found, **heads.describe()).means(**MEANINGS),
            ],
            self._control(heads, verdict, rounding),
            notes=[population.note, self._how_decided(verdict, boxes)],
            remarks=[
                *self._on_pattern(heads.off > SUPPORT and excess > rounding, excess / heads.single.value),
                *self._on_one_head(heads.single.value - bound.value > rounding, heads.gains),
                "Sums of y_t y_(t+k) over shifted windows differ only at their ends, so the risk is "
                "nearly flat along such shifts: the condition number of the quadratic form is "
                f"{bound.condition:.2g}.",
            ],
        )

    def _below(self, heads: BestHeads, level: float, of_pattern: bool = False) -> HeadsBelow:
        free_P = heads.mask_P if of_pattern else None
        return heads_below(heads.population.risk, self.window, level, self.boxes, free_P)

    def _control(self, heads: BestHeads, verdict: str, rounding: float) -> Control:
        """Ask for a proof of what is false: that all heads are above one that was found."""
        half = max(heads.excess / 2, DECIDES * heads.pattern.value)
        below = self._below(heads, heads.pattern.value + half, of_pattern=verdict != "holds")
        return Control(
            "excess over the best head of (13) of a level that branch and bound must find a head below",
            half,
            below.refuted and half > rounding,
        )

    def _how_decided(self, verdict: str, boxes: int) -> str:
        if verdict == "fails":
            return (
                f"Branch and bound over b ({boxes} boxes) shows that every head of (13) has a larger risk "
                "than the head found."
            )
        if verdict == "holds":
            return (
                f"Branch and bound over all b ({boxes} boxes) shows that no head is below the best head of "
                f"(13) by more than {PROVED:.0e} of its risk."
                if boxes
                else "A head of (13) attains the convex lower bound, so no layer is better."
            )
        if self.law.covariances is None:
            return "undecided: drawn systems decide no equality; settings a and b have an exact risk."
        return (
            f"undecided: {boxes} boxes of b are too few for a proof; how many it takes grows "
            f"with the power s. `icl check check=lds/optimum_s check.window={self.window} "
            f"check.boxes={20 * self.boxes}` goes further."
        )

    def _on_pattern(self, beaten: bool, relative: float) -> list[str]:
        if not beaten:
            return []
        return [
            f"At s = {self.window} pattern (13) is not optimal: the best head found has b on the entries "
            f"of the other parity, one step earlier, and a risk that is lower by {relative:.2g} of it. A "
            "search restricted to (13) excludes this head; the two differ by a shift of the window."
        ]

    def _on_one_head(self, beaten: bool, gains: dict[str, float]) -> list[str]:
        if not beaten:
            return []
        return [
            "One head does not suffice: its relative excess over the convex bound is "
            f"{gains['excess_over_bound']:.3g}, that of two heads "
            f"{gains['two_heads_excess_over_bound']:.2g}. So one head cannot solve (11) here, which is "
            "sufficient for optimality and not necessary."
        ]
