"""giannou, section 3.2.1: gradient descent takes a number of steps linear in kappa(A^T A), Newton's iteration
one logarithmic in it.

The error of descent on |A w - y|^2 / 2 is (I - eta A^T A)^t times the first; the worst start lies along an
extreme eigenvector.
"""

from dataclasses import dataclass

from flint import arb, fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.theory.giannou.balls import greatest
from icl.theory.giannou.inversion import descent_steps, steps_to
from icl.theory.rationals import rational

CONDITIONS = (2, 10, 100, 1000)  # of A^T A
OTHER_SIZES = ("1/2", "9/10", "999/1000", "1001/1000")  # of the best step size


@dataclass
class GradientDescent(Statement):
    dim: int = setting(5, 2, 200, most=10_000, beyond="nothing new is to be seen")
    # of |w_t - w*| / |w_0 - w*|
    accuracy: float = setting(1e-3, 1e-300, 0.1, most=0.1, beyond="few steps are counted")

    paper, where = "giannou", "Section 3.2.1 (Akyurek et al. 2022), Remark 4.5"
    title = "Steps of gradient descent beside Newton's"
    law = "any A of condition kappa(A^T A), eigenvalues spread evenly, the worst w_0"
    claim = (
        "Gradient descent on least squares takes O(kappa(A^T A) log(1/eps)) steps to accuracy eps, and from "
        "the worst start no fewer, up to a constant; Newton's iteration takes O(log kappa + log log(1/eps))."
    )
    quote = (
        '"the number of steps (or equivalently, depth of the Transformer) required for convergence up to '
        r'$\epsilon$ error is of order $O(\kappa(A^\top A) \log(1/\epsilon))$" (Section 3.2.1)'
    )
    formula = r"O(\kappa(A^\top A) \log(1/\epsilon))"

    def measure(self, m: Measured) -> None:
        accuracy = rational(self.accuracy)
        log = -arb(accuracy).log()
        steps = [descent_steps(self._rate(kappa), accuracy) for kappa in CONDITIONS]

        def off(rates: list[arb]) -> arb:
            # artanh(1/kappa) lies between 1/kappa and 1/(kappa - 1/kappa), and a count is rounded up
            rounded = [1 + log / (2 * kappa) for kappa in CONDITIONS]
            return greatest(abs(s - r * log) / most for s, r, most in zip(steps, rates, rounded, strict=True))

        about = "largest difference of the steps from kappa/2 log(1/eps), over what is rounded up"
        m.below("off", off([arb(kappa) / 2 for kappa in CONDITIONS]), 1, about)
        momentum = off([arb(kappa).sqrt() / 2 for kappa in CONDITIONS])
        m.control("the same for sqrt(kappa)/2, a rate that momentum has, less 1", momentum - 1, of="off")
        newton = [steps_to(2, fmpq(kappa, kappa + 1), accuracy) for kappa in CONDITIONS]
        most = [((kappa + fmpq(1, 2)) * log).log() / arb(2).log() + 1 for kappa in CONDITIONS]
        about = "most of Newton's steps beyond log2((kappa + 1/2) log(1/eps)) + 1"
        excess = greatest(n - bound for n, bound in zip(newton, most, strict=True))
        m.below("newton_excess", excess, 0, about)
        others = [descent_steps(self._rate(CONDITIONS[2], rational(s)), accuracy) for s in OTHER_SIZES]
        about = "most steps saved by another fixed step size at kappa = 100"
        m.below("gain", steps[2] - min(others), 1, about)

    def _rate(self, kappa: int, share: fmpq | int = 1) -> fmpq:
        """Return the largest |1 - eta lambda| over eigenvalues, at a share of 2 / (lambda_1 + lambda_d)."""
        spread = [1 + (kappa - 1) * fmpq(i, self.dim - 1) for i in range(self.dim)]
        return max(abs(1 - share * 2 * x / (1 + kappa)) for x in spread)
