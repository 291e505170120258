"""giannou, Lemma B.8 and the display before the bound of (B.9): bounds on one damped Newton step."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from random import Random

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.checks.giannou.settings import LogisticProblems
from icl.checks.statement import Blurred, Measured
from icl.theory.giannou.balls import greatest, least
from icl.theory.giannou.inexact import error_allowed
from icl.theory.giannou.logistic import Logistic, Point, direction, minimum, norm
from icl.theory.rationals import rational

DISTANCES = (fmpq(0), fmpq(1, 100))  # from the minimum, where steps with errors are taken


@dataclass
class LemmaB8(LogisticProblems):
    where = "Lemma B.8; Appendix B.2, the display before the bound of (B.9)"
    title = "Lemma B.8 and beside (B.9): bounds on one step"
    claim = (
        "For the regularised logistic loss, -1 + mu |x| <= |grad f| <= 1 + mu |x|, mu <= |Hess f| <= 1 + mu, "
        "and (-1 + mu |x|) / sqrt(1 + mu) <= lambda_f <= (1 + mu |x|) / (2 sqrt(mu)); a damped step with an "
        "error has 0 <= delta/(1 - delta) - lambda <= delta + lambda, delta its length in the norm of Hess g."
    )
    quote = (
        r'"it holds that $\frac{-1 + \mu\|x\|_2}{\sqrt{1 + \mu}} \leq \lambda(x) \leq \frac{1 + '
        r'\mu\|x\|_2}{2\sqrt{\mu}}$" (Lemma B.8, Appendix B)'
    )
    formula = (
        r"\frac{-1 + \mu\|x\|}{\sqrt{1 + \mu}} \le \lambda_f(x) \le \frac{1 + \mu\|x\|}{2\sqrt{\mu}},\quad "
        r"0 \le \tfrac{\delta}{1 - \delta} - \lambda \le \delta + \lambda"
    )

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        rng, mu = Random(self.seed), rational(self.mu)
        losses = [self.draw(rng) for _ in range(self.problems)]
        points = [self._worst(), *(self.far(loss, rng, -2) for loss in losses)]
        seen = [(mu * norm(at.x), norm(at.gradient), at.decrement) for at in points]
        upper = greatest(step * arb(mu).sqrt() / (1 + size) for size, _, step in seen)
        m.below("lambda_over_printed_bound", 2 * upper, 1, "largest ratio of lambda_f to its upper bound")
        m.below("lambda_over_twice_printed_bound", upper, 1, "largest ratio of lambda_f to twice that bound")
        about = "the largest ratio of lambda_f to 1.98 times the printed bound, less 1"
        m.control(about, upper * fmpq(100, 99) - 1, of="lambda_over_twice_printed_bound")
        gradient = greatest((slope / (1 + size)).max((size - 1) / slope) for size, slope, _ in seen)
        m.below("gradient_over_bound", gradient, 1, "largest ratio of the gradient to its bounds")
        m.control("the same to half of 1 + mu |x|, less 1", 2 * gradient - 1, of="gradient_over_bound")
        low = greatest((size - 1) / step for size, _, step in seen)
        about = "largest ratio of the lower bound of lambda_f to lambda_f"
        m.below("lambda_lower_bound_over_lambda", low / arb(1 + mu).sqrt(), 1, about)
        about = "largest trace of Hess f - mu I, which bounds its norm"
        m.below("hessian_less_mu", greatest(at.hessian.trace() - mu * self.dim for at in points), 1, about)
        self._display(m, rng, losses)
        m.note(
            "The correct upper bound is lambda_f <= |grad f| / sqrt(mu) <= (1 + mu |x|) / sqrt(mu); the "
            "proof of Theorem 5.4 uses both forms in one line. Only constants depend on the factor. The "
            "first bound is introduced as one on |f(x)|; the gradient is meant."
        )
        m.note(
            "Beside (B.9): an error against the step makes delta smaller than lambda / (1 + lambda), and the "
            "middle negative; at the minimum lambda is 0 and delta / (1 - delta) exceeds delta. The proof "
            "needs a bound of |G_t| only: for delta <= 1/5 both terms are at most (5/4) delta + lambda, "
            "which changes the constants of Theorem 5.4 and not its statement."
        )

    def _display(self, m: Measured, rng: Random, losses: list[Logistic]) -> None:
        left, right, repaired, without, control = [], [], [], [], []
        for loss in losses:
            away, lowest = direction(rng, self.dim), minimum(loss)
            for distance in DISTANCES:
                at = loss.at(lowest + distance * away)
                size, move = at.scaled_decrement, at.move
                if not size.rel_accuracy_bits() > 20:
                    raise Blurred
                if not size < fmpq(1, 6):
                    continue
                exact = at.local_norm(move)
                without.append(exact / (1 - exact) - size)
                control.append(size / 100)
                error = error_allowed(at)
                for step in (move + arb_mat(away) * error, move - move * (error / norm(move))):
                    delta = at.local_norm(step)
                    middle = delta / (1 - delta) - size
                    left.append(middle)
                    right.append(middle - delta - size)
                    repaired.append(abs(middle).max(delta + size) - (fmpq(5, 4) * delta + size))
        off = greatest(map(abs, without))
        m.zero("exact_step", off, "delta/(1 - delta) - lambda of exact steps", within=fmpq(1, 10**12))
        m.control("the same with 1.01 lambda for lambda", greatest(control), of="exact_step")
        m.above("display_left", least(left), 0, "least delta/(1 - delta) - lambda, steps with errors")
        m.below("display_right", greatest(right), 0, "largest of the same less delta + lambda")
        about = "largest bound of |G_t| by (B.9)'s terms less (5/4) delta + lambda"
        m.below("repaired", greatest(repaired), 0, about)

    def _worst(self) -> Point:
        """Return one unit point with a label that is wrong by a margin r, p (1 - p) ~ exp(-r) below mu."""
        r = 30 + ceil(max(0.0, -log(Fraction(self.mu))))
        a = fmpq_mat(1, self.dim, [1] + [0] * (self.dim - 1))
        return Logistic(a, [1], rational(self.mu)).at(-r * a.transpose())
