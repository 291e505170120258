"""The law of looped's statements, and the best matrix that a search finds."""

from dataclasses import dataclass
from functools import cached_property

from flint import fmpq

from icl.checks.prompts import Prompts
from icl.checks.statement import OPEN, Blurred, Measured, setting
from icl.errors import InputError
from icl.theory.looped import normal
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import coefficients
from icl.theory.looped.search import Rotated, best_rotation
from icl.theory.looped.symmetric import scalar_is_least
from icl.theory.roots import evaluate

WIDE, DEEP = "a recursion over words takes minutes", "products of two traces of degree 16 take minutes"
SADDLES = {  # context lengths from which the best scalar is a saddle, at 2, 3, .. 8 loops, by dimension
    2: (15, 15, 9, 9, 8, 8, 7),
    3: (20, 18, 11, 10, 9, 9, 9),
    4: (25, 22, 12, 12, 11, 10, 10),
    5: (31, 26, 14, 13, 12, 12, 11),
    6: (39, 30, 16, 15, 13, 13, 13),
}
SADDLE_FROM = {(d, L): n for d, row in SADDLES.items() for L, n in enumerate(row, 2)}
THREE_LOOPS = {(d, 3): n for d, n in zip(range(2, 7), (14, 17, 20, 22, 25), strict=True)}
LOWER_FROM = SADDLE_FROM | THREE_LOOPS | {(2, 5): 8, (2, 7): 7, (4, 5): 11}  # before, by a far rotation


@dataclass
class Looped(Prompts):
    """Dimension, context length, loops, eigenvalues or covariance of x."""

    dim: int = setting(2, 1, 3, most=20, beyond=WIDE)
    context: int = setting(20, 1, 60)
    layers: int = setting(4, 1, 4, most=8, beyond=DEEP)

    paper, origin = "looped", "icl"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, one A for all L layers, in whitened coordinates"

    @cached_property
    def steps(self) -> EqualSteps:
        return EqualSteps(self.dim, self.context, self.layers)

    def found(self) -> Rotated:
        """Return the best a I + b K found, where balls are sharp enough to find it."""
        found, (_, lowest) = best_rotation(self.steps), self.steps.optimum
        if not found.risk < lowest * fmpq(1001, 1000):
            raise Blurred
        return found


def measure_fall(m: Measured, steps: EqualSteps, at: str = "") -> None:
    """Require that an antisymmetric part lowers the risk of the best scalar to second order."""
    step, least = steps.optimum
    curves = steps.antisymmetric_curvature, steps.symmetric_curvature
    downward, upward = (evaluate(curve, step) / least for curve in curves)
    about = f"minus the coefficient of b^2 along an antisymmetric matrix of norm 1{at}, over the risk"
    m.positive("fall", -downward, about)
    m.control("minus that of h^2 along a symmetric matrix of trace 0", -upward, of="fall", wants="negative")


@dataclass
class Plane(Looped):
    """The same in two dimensions."""

    dim: int = setting(2, 2, 2, most=2, beyond="no certificate is known")


class Searched(Looped):
    """Statements that search for the best matrix: beyond two dimensions by words, to five layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim > 2 and self.layers > normal.MOST_LAYERS:
            raise InputError(
                f"check.layers={self.layers}: at most {normal.MOST_LAYERS} beyond check.dim=2; beyond, {WIDE}"
            )

    def expected(self) -> str:
        """Return whether some matrix is below every multiple of Sigma^-1."""
        if self.dim == 1 or self.layers == 1:
            return "fails"
        if self.context >= LOWER_FROM.get((self.dim, self.layers), self.context + 1):
            return "holds"
        return "fails" if self.dim == self.layers == 2 else OPEN

    def lower(self, found: bool) -> bool | None:
        """Decide it, given whether one is found: in one dimension and at one layer the risk is convex."""
        if found:
            return True
        if self.dim == 1 or self.layers == 1:
            return False
        plane = self.dim == self.layers == 2
        if plane and scalar_is_least(coefficients(2, self.context), self.steps.optimum[0]):
            return False
        return None
