"""Ahn et al. 2023, section 6: one head of softmax attention against one of linear attention.

A lower bound for all heads decides, sampled and with branch and bound (icl.theory.ahn.softmax_bound). Beside
it the best layers that descents find: none may be below, and one near the linear optimum refutes the claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icl.checks.ahn.softmax_heads import excess
from icl.checks.statement import OPEN, UNREFUTED, Measured, Sample, Statement, setting, sign
from icl.errors import InputError, whole
from icl.random import generator
from icl.theory.ahn import softmax_bound
from icl.theory.rationals import rational

CONFIDENCE = 0.999  # of the bound, for all heads together
MARGIN = 0.05  # of the linear optimum: less is no degradation, and what a search may lose
SCORES = 2  # samples of a prompt's scores for each prompt that is searched on
MAX_TOKENS = 10_000_000


@dataclass
class Softmax(Statement):
    """Numbers of heads (one among them), random starts for each, prompts to search on (`samples`), boxes that
    branch and bound may use."""

    dim: int = setting(5, 1, most=1_000_000, beyond="larger ones were not tried")
    context: int = setting(20, 1)
    heads: Sequence[int] = (1, 2)
    starts: int = setting(2, 2, most=1000, beyond="the search takes hours")
    samples: int = setting(4000, 500)
    boxes: int = setting(8000, 256, most=1_000_000, beyond="branch and bound takes days")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 6, eq. (2)"
    title = "Section 6: softmax against linear attention"
    law = "x ~ N(0, I), w ~ N(0, I), n examples, y = w.x"
    claim = (
        "On linear regression the least population risk of one head of softmax attention is more than 5 % "
        "above that of one head of linear attention."
    )
    quote = (
        '"softmax activations generally degrade the prediction performance, and in particular, softmax '
        "transformers typically need more attention heads to match their performance with that of linear "
        'transformers" (Section 6)'
    )
    formula = r"\min f_{\text{softmax}, H=1} > \min f_{\text{linear}, H=1}"
    tries = 0  # a search, and branch and bound

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.heads, str) or not isinstance(self.heads, Sequence) or 1 not in self.heads:
            raise InputError(f"check.heads={self.heads}: must be a list of numbers of heads with 1 in it")
        self.heads = [whole("check.heads", H, 1, 16) for H in self.heads]
        if len(set(self.heads)) < len(self.heads):
            raise InputError(f"check.heads={self.heads}: has duplicates")
        if self.samples * self.context > MAX_TOKENS:
            most = f"at most {MAX_TOKENS // self.context} of check.samples fit into the memory"
            raise InputError(f"check.context={self.context}: {most}, not {self.samples}")

    def expected(self) -> str:
        """Elsewhere the bound may be too low, and where n is far below d the claim is false."""
        if self.dim < softmax_bound.LEAST_DIM:
            return "undecided"
        if not (3 < self.dim <= 10 and self.context >= 2 * self.dim):
            return OPEN
        return "holds" if self.boxes >= 8000 else UNREFUTED

    def measure(self, m: Measured) -> None:
        sizes = self.dim, self.context
        found = {H: excess(*sizes, H, self.starts, self.samples, self.seed) for H in self.heads}
        t_MN = generator(self.seed, "check").standard_normal((SCORES * self.samples, self.context))
        bounds = softmax_bound.excess_bounds(t_MN, self.dim, CONFIDENCE, self.boxes)
        one, (low, limit, of_linear) = found[1], bounds
        bound = Sample(low, 0.0)
        about = f"lower bound, with {CONFIDENCE:.1%} confidence, of every softmax head's relative excess"
        if low > MARGIN:
            m.above("excess_bound", bound, rational(MARGIN), about)
        else:
            m.number("excess_bound", bound, about)
            m.undecided(self._why(low, limit))
        about = "relative excess over the linear optimum of the best softmax head found, on fresh prompts"
        m.above("excess_of_one_head", one, rational(MARGIN), about, searched=True)
        below = sign(Sample(one.mean - low, one.stderr)) == -1
        m.true("no_head_below", None if below else True, "the best softmax head found is not below the bound")
        about = "the same bound for linear attention, without branch and bound, minus 5 %"
        m.control(about, Sample(of_linear - MARGIN, 0.0), wants="negative")
        m.number("excess_by_heads", found, "relative excess of the best layer found, by number of heads")
        m.note("the bound lets a head choose its weights anew for each query, and is no least risk")
        m.note("with two heads, the terms that do not depend on the query can cancel")
        m.note("the search is among heads that commute with rotations; the bound is for all")

    def _why(self, low: float, limit: float) -> str:
        if self.dim < softmax_bound.LEAST_DIM:
            return f"the bound needs check.dim of at least {softmax_bound.LEAST_DIM}"
        if limit <= MARGIN:
            return f"no number of boxes raises the bound above {limit:.1%}"
        return (
            f"the bound of all heads, {low:.1%}, is too low; check.boxes={8 * self.boxes} raises it, to "
            f"{limit:.1%} at most"
        )
