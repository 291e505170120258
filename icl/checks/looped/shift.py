"""looped: prompts of another Sigma than in training, w ~ N(0, Sigma^-1) of theirs.

In coordinates in which the test's Sigma is the identity A becomes F^T A F: c A for c Sigma, and for one
direction stretched by k a matrix whose symmetric part is a diag(sqrt k, 1 / sqrt k).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, fmpq

from icl.checks.looped.settings import Plane
from icl.checks.statement import OPEN, Measured, setting
from icl.errors import reals
from icl.theory.looped.plane import at, coefficients
from icl.theory.rationals import rational

ONE = fmpq(1)
SCALES, STRETCHES = (0.8, 0.9, 1.0, 1.1, 1.25), (1.25, 1.5)
BETWEEN = {2: (1, 1), 3: (1, 1), 4: (14, 424), 5: (10, 1316), 6: (9, 2588)}  # context lengths at these


@dataclass
class Shift(Plane):
    layers: int = setting(4, 2, 5, most=8, beyond="a search takes minutes")
    context: int = setting(20, 1, 100)
    scales: Sequence[float] = SCALES
    stretches: Sequence[float] = STRETCHES

    where, title = "statement 8", "Another Sigma than in training"
    claim = (
        "On prompts of these other Sigma the rotation keeps a lower risk than the best scalar of training."
    )
    formula = r"f_{\Sigma'}(A) < f_{\Sigma'}(a \Sigma^{-1})"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scales = reals("check.scales", self.scales, None, 0, open_low=True)
        self.stretches = reals("check.stretches", self.stretches, None, 0, open_low=True)

    def expected(self) -> str:
        """Two and three loops gain too little; long prompts have a scalar that is best within a narrow
        range."""
        if self.layers not in BETWEEN or [*self.scales, *self.stretches] != [*SCALES, *STRETCHES]:
            return OPEN
        low, high = BETWEEN[self.layers]
        return "holds" if low <= self.context < high else "fails"

    def measure(self, m: Measured) -> None:
        found, terms = self.found(), coefficients(self.layers, self.context)

        def gain(scale: fmpq, stretch: fmpq = ONE, turn: fmpq = found.b) -> arb:
            root = arb(stretch).sqrt()
            mean, apart = (root + 1 / root) / 2, (root - 1 / root) / 2
            rotation, scalar = (
                at(terms, scale * a * mean, arb(scale * b), (scale * a * apart) ** 2)
                for a, b in ((found.a, turn), (self.steps.optimum[0], fmpq(0)))
            )
            return 1 - rotation / scalar

        scaled = [gain(rational(c)) for c in self.scales]
        m.positive("gain_by_scale", scaled, "gain at c Sigma, in the order of the scales")
        stretched = [gain(ONE, rational(k)) for k in self.stretches]
        m.positive("gain_by_stretch", stretched, "gain where one direction is stretched")
        wrong = gain(ONE, turn=found.a + found.b)
        m.control("gain of a matrix that turns too far, by a more", wrong, wants="negative")
