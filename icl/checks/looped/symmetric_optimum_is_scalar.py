"""looped: among symmetric matrices, applied L times, the best is a multiple of Sigma^-1.

|B|_F^2 is at least the sum of |eigenvalue|^2 (Schur), so that f(A) >= s(A) = E tr (I - G^1/2 A G^1/2)^(2L)
for a symmetric A. s is convex and the same at every Q A Q^T, so that s(A) >= s(a I) = f(a I), a = tr A / d.
"""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.looped.settings import Looped
from icl.checks.statement import Measured, setting
from icl.theory.looped import normal
from icl.theory.looped.plane import at
from icl.theory.roots import evaluate, is_positive, near

FAST = 4  # layers up to which words take less than a second


@dataclass
class SymmetricOptimumIsScalar(Looped):
    dim: int = setting(2, 2, 4, most=20, beyond="the recursion takes minutes")

    where, title = "statement 4", "Among symmetric matrices a scalar is best"
    claim = (
        "Every symmetric matrix, applied L times, has at least the risk of (tr A / d) I, at every d, n, L."
    )
    formula = (
        r"f(A) \ge \mathbb{E}\, \mathrm{tr} (I - G^{1/2} A G^{1/2})^{2L} \ge f(\tfrac{\mathrm{tr} A}{d} I)"
    )

    def measure(self, m: Measured) -> None:
        step, least = self.steps.optimum
        (_, along_k), (whole, along_h) = self.steps.curvatures(-1), self.steps.curvatures(1)
        schur = whole - along_h
        about = "the coefficient of h^2 in the second inequality is positive at every a"
        m.true("convex", is_positive(along_h), about)
        about = "and so is the coefficient in the first, or the two sides agree"
        m.true("schur", schur == 0 or is_positive(schur), about)
        if self.layers <= FAST:
            a = near(step, 12)
            stretched = normal.stretched(self.dim, self.context, self.layers)
            mean = self.steps.polynomial(a * (1 + fmpq(1, 2 * self.dim)))
            excess = at(stretched, a, a / 2) / mean - 1
            about = "risk of a matrix with one eigenvalue 3/2 of the others over that of its mean, less 1"
            m.positive("excess", excess, about)
        about = "the coefficient along an antisymmetric matrix in the second inequality"
        m.control(about, evaluate(along_k, step) / least, wants="not positive")
