"""giannou, Theorem 5.4: damped Newton with errors |eps_t| <= eps, a constant decrease first, then quadratic.

lambda is that of g = f / (4 mu), and eps <= min(.01, .04 mu / (1 + mu |x|)). Self-concordance makes both
phases inequalities in lambda (icl.theory.giannou.phases); runs on drawn problems meet them.
"""

from dataclasses import dataclass
from random import Random

from flint import arb, fmpq, fmpq_poly

from icl.checks.giannou.settings import LogisticProblems
from icl.checks.statement import Measured, setting
from icl.theory.giannou import phases
from icl.theory.giannou.balls import greatest, least
from icl.theory.giannou.inexact import Runs
from icl.theory.giannou.phases import SIXTH
from icl.theory.rationals import rational

ACCURACIES = tuple(fmpq(1, 10**k) for k in (3, 5, 7, 9, 30, 300))
ALLOWED = 2  # steps beyond log2 log2 (1/eps)


@dataclass
class Theorem5_4(LogisticProblems):
    problems: int = setting(4, 1, 4, most=10_000, beyond="they take minutes")

    where = "Theorem 5.4, Remarks B.11 and C.1; Lemma B.4, eq. (B.7); Section 3.2.2"
    title = "Theorem 5.4: damped Newton with errors converges"
    claim = (
        "Damped Newton with errors of at most eps decreases g by at least .01 per step while lambda >= 1/6 "
        "(without errors by .02 while lambda >= 1/4); after that lambda' <= 3 lambda^2 + C' eps, and g - g* "
        "<= eps after at most log2 log2 (1/eps) + 2 further steps."
    )
    quote = (
        r'"when $\lambda(x_t) < 1/6$, the inequality $\lambda(x_{t+1}) \leq c\lambda(x_t)^2 + \epsilon'
        "'$ holds, which implies further quadratic convergence to achieving $O(\\epsilon)$ error\" (after "
        "Theorem 5.4, Section 5.2)"
    )
    formula = (
        r"g(x_{t+1}) \le g(x_t) - .01 \ (\lambda_t \ge \tfrac16),\quad \lambda_{t+1} \le 3 \lambda_t^2 + C' "
        r"\varepsilon \ (\lambda_t < \tfrac16)"
    )

    def measure(self, m: Measured) -> None:
        mu, low = rational(self.mu), fmpq(1, 100)
        guaranteed = phases.decrease(mu, arb(SIXTH))
        m.above("guaranteed_decrease", guaranteed, low, "least decrease of g in a step from lambda = 1/6")
        m.control("the same beside .0126", guaranteed - fmpq(126, 10**4), of="guaranteed_decrease")
        m.true("phase_one", phases.decreases_by(mu, low), "no lambda >= 1/6 has a decrease of .01 or less")
        exact = [size - arb(1 + size).log() for size in (fmpq(1, 4), fmpq(1, 5))]
        m.above("exact_decrease", exact[0], 2 * low, "least decrease in an exact step from lambda = 1/4")
        m.control("the same from lambda = 1/5, less .02", exact[1] - 2 * low, of="exact_decrease")
        e = phases.local_error(mu, phases.largest_error(mu))
        m.below("largest_error", e, fmpq(1, 3), "largest error in the norm of Hess g: 2 / (1 - e) <= 3")
        self._count(m, mu)
        m.true("lemma_B4", min(phases.lemma_b4()) >= 0, "bounds of w and w* (B.4), and (B.7)")
        about = "least coefficient for the bound t^2 / (2 + 1.2 t) of w"
        too_sharp = phases.above_omega(fmpq_poly([2, fmpq(6, 5)]))
        m.control(about, min(too_sharp), of="lemma_B4", wants="negative")
        rng, run = Random(self.seed), Runs()
        for _ in range(self.problems):
            run.follow(self.far(self.draw(rng), rng, 0), rng)
        m.below("max_ratio_phase2", greatest(run.ratios), 1, "largest lambda' / (3 lambda^2 + C' eps) seen")
        about = "the same for an error of local norm 4 C' eps, less 1"
        m.control(about, least(run.wrong) - 1, of="max_ratio_phase2")
        m.below("final_gap_over_eps", greatest(run.gaps), 1, "largest final g - g* over eps seen")
        m.note(
            "delta_t^2 is printed with the inverse of the Hessian in eps^T Hess g eps and with the bound "
            "eps^2 / 4; the bound is eps^2 (1 + mu) / (4 mu). A bracket is missing in G_t = Hess g(x_t + s "
            "Delta) - (1 + lambda) Hess g(x_t). The telescoping step lambda' - alpha <= 3 (lambda - "
            "alpha)^2 is not an identity. The final bound lambda <= C'' sqrt(eps) is weak: the iteration "
            "settles at lambda ~ C' eps and g - g* below .6 (C' eps)^2, so that Remark B.11's eps' = "
            "sqrt(eps) is not needed."
        )
        m.note(
            "Phase one is true with .01, but for a reason that appendix E.1 does not give: the contribution "
            "of the error is at most lambda eps sqrt((1/4 + mu)/(4 mu)), because p (1 - p) <= 1/4. C_1 is "
            "at most 100 (g(x_0) - g*) + 2: a constant in eps that grows with the distance of x_0 and with "
            "1/mu."
        )
        m.note("Lemma B.4 says t >= 0 for both functions, but w* is defined for t < 1 only.")

    def _count(self, m: Measured, mu: fmpq) -> None:
        two = arb(2).log()
        allowed = [((-arb(eps).log() / two).log() / two) + ALLOWED for eps in ACCURACIES]
        steps = [phases.steps_of_phase_two(mu, eps) for eps in ACCURACIES]
        excess = greatest(t - bound for t, bound in zip(steps, allowed, strict=True))
        m.below("excess", excess, 0, "most steps of phase two beyond log2 log2 (1/eps) + 2")
        linear = greatest(
            (fmpq(3, 5) * SIXTH**2 / eps).log() / (2 * two) - bound
            for eps, bound in zip(map(arb, ACCURACIES), allowed, strict=True)
        )
        m.control("the same of a lambda that halves in every step", linear, of="excess")
