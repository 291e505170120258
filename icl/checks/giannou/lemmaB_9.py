"""giannou, Lemmas B.9 and B.10: damped Newton steps with errors |eps| <= mu^2, far from 0 and for ever.

Far out a step shortens x by 2, whatever mu; an outward error lengthens it by mu^2.
"""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from flint import arb, arb_mat, fmpq

from icl.checks.giannou.settings import LogisticProblems
from icl.checks.statement import Measured, setting
from icl.theory.giannou.balls import greatest, least
from icl.theory.giannou.logistic import Logistic, direction, norm, rounded
from icl.theory.giannou.one_step import beyond, constant_of, growth, growth_bounds
from icl.theory.rationals import rational

RADII = (2, 10, 100, 10**4, 10**6)  # in units of C, or of the radius from which x grows
STARTS = (fmpq(0), fmpq(1, 2), fmpq(1))  # |x_0| as shares of C
ONE = fmpq(1)


@dataclass
class LemmaB9(LogisticProblems):
    mu: float = setting(2.0, 1e-3, 1e3)
    steps: int = setting(20, 1, 20, most=10_000, beyond="they take minutes")  # of each sequence

    where, title = "Lemmas B.9 and B.10", "Lemmas B.9 and B.10: steps with large errors"
    claim = (
        "For every mu > 0 there is a constant C such that a damped Newton step with an error |eps| <= mu^2 "
        "from any x with |x| >= C has |x'| <= |x|; the iterates of steps with such errors are bounded by a "
        "constant that depends on mu and x_0."
    )
    quote = (
        r'"there exists some constant $C > 0$ depending on $\mu$ such that for any $\varepsilon \in '
        r"\mathbb{R}^d$ with $\|\varepsilon\|_2 \leq \mu^2$, if $\|x\|_2 \geq C$, then $\left\|x - "
        r"\frac{2\sqrt{\mu}}{2\sqrt{\mu} + \lambda(x)} \nabla^2 f(x)^{-1} \nabla f(x) + "
        r'\varepsilon\right\|_2 \leq \|x\|_2$" (Lemma B.9, Appendix B)'
    )
    formula = r"\|x\| \ge C(\mu),\ \|\varepsilon\| \le \mu^2\ \implies\ \|x'\| \le \|x\|,\quad \|x_t\| \le C"

    def expected(self) -> str:
        return "holds" if self.mu**2 < 2 else "fails"

    def measure(self, m: Measured) -> None:
        rng, mu = Random(self.seed), rational(self.mu)
        error = mu**2
        m.below("limit", error - 2, 0, "limit mu^2 - 2 of |x'| - |x| far out, with the largest error outward")
        m.control("the same limit for an error of norm 2 more", error, of="limit")
        radius = constant_of(mu, error) if error < 2 else arb(beyond(mu, error))
        losses = [self.draw(rng) for _ in range(self.problems)]
        inside, half, grown = [], [], []
        for loss in losses:
            away = arb_mat(direction(rng, self.dim))
            for share in RADII:
                at = loss.at(rounded(away * (share * radius)))
                low, high = growth_bounds(mu, norm(at.x))
                inside += [growth(at, ONE) - low, high - growth(at, ONE)]
                half.append((growth(at, fmpq(1, 2)) - low).min(high - growth(at, fmpq(1, 2))))
                grown.append(growth(at, ONE) + error)
        m.positive("inside_bounds", least(inside), "least distance of a step from its bounds")
        m.control("the same of half a step", least(half), of="inside_bounds")
        ends = [
            self._norms(loss, arb_mat(direction(rng, self.dim)) * (start * radius))
            for loss in losses
            for start in (STARTS if error < 2 else STARTS[-1:])
        ]
        if error < 2:
            m.below("growth", greatest(grown), 0, "largest |x'| - |x| from twice C on, errors outward")
            most = greatest(x for norms in ends for x in norms[1:])
            m.below("largest_over_constant", most / radius, 1, "largest |x_t| over C, errors outward")
            m.number("constant", radius, "constant C of both lemmas")
        else:
            grown = [after - before for norms in ends for before, after in pairwise(norms)]
            about = "least growth of |x_t| in a step, errors outward"
            m.below("least_growth_in_a_step", least(grown), 0, about)
        m.note(
            "The proof of B.9 bounds mu x^T H^{-1} x from below by mu^2 |x|^2; H <= (1 + mu) I gives only mu "
            "/ (1 + mu) |x|^2. For every mu errors below 2 are admissible. Theorem 5.4 assumes errors of at "
            "most .01 and is not affected."
        )

    def _norms(self, loss: Logistic, x: arb_mat) -> list[arb]:
        """Return |x_t| along steps with outward errors of norm mu^2, less what rounding takes."""
        at = loss.at(rounded(x))
        norms = [norm(at.x)]
        for _ in range(self.steps):
            moved = at.x + at.move
            at = loss.at(rounded(moved + moved * (loss.mu**2 / norm(moved))))
            norms.append(norm(at.x))
        return norms
