"""looped: a matrix that is best for L loops, applied L' > L times."""

from dataclasses import dataclass

from icl.checks.looped.settings import Plane
from icl.checks.statement import OPEN, Measured, setting
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import risk
from icl.theory.looped.search import best_rotation
from icl.theory.roots import near

# Context lengths from which it holds, by layers, at `most` 3 .. 8.
FROM = {2: (18, 18, 20, 22, 23, 24), 3: (14,) * 6, 4: (9, 9, 9, 11, 13, 15), 5: (8, 8, 8, 8, 10, 11)}


@dataclass
class LoopsBeyondTraining(Plane):
    layers: int = setting(4, 2, 5, most=8, beyond="a search takes minutes")
    context: int = setting(20, 1, 200)
    most: int = setting(8, 3, 8, most=12, beyond="polynomials of degree 24 take minutes")  # loops in tests

    where, title = "statement 7", "More loops than in training"
    claim = (
        "Applied more often than in training, up to `most` times, the rotation keeps a lower risk than the "
        "scalar."
    )
    formula = r"f_{L'}(\arg\min f_L) < f_{L'}(\arg\min_{a I} f_L),\quad L' \ge L"

    def expected(self) -> str:
        """Short prompts have rare ones on which the rotation diverges first."""
        first = dict(enumerate(FROM.get(self.layers, ()), 3)).get(self.most)
        return OPEN if first is None else "holds" if self.context >= first else "fails"

    def measure(self, m: Measured) -> None:
        found, step = self.found(), near(self.steps.optimum[0], m.bits // 4)
        loops = range(self.layers, max(self.most, self.layers + 1) + 1)
        scalar = [risk(L, self.context, step) for L in loops]
        turned = [risk(L, self.context, found.a, found.b) for L in loops]
        gains = [1 - t / s for t, s in zip(turned, scalar, strict=True)]
        m.positive("gains", gains, f"gain at {loops[0]} to {loops[-1]} loops")
        best = best_rotation(EqualSteps(2, self.context, loops[-1])).risk
        about = "risk of the matrix best for the most loops over the reused one's, less 1"
        m.control(about, best / turned[-1] - 1, wants="negative")
        m.note("Gaussian prompts have no largest eigenvalue: beyond some number of loops every risk grows.")
