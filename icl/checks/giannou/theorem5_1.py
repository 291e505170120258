"""giannou, Theorem 5.1: T constructed Newton steps end within sqrt(eps (1+mu)/(4 mu)) of the minimum."""

import math
from dataclasses import dataclass
from random import Random

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.checks.giannou.settings import NewtonSteps
from icl.checks.statement import UNREFUTED, Measured, setting
from icl.errors import whole
from icl.theory.giannou.balls import greatest
from icl.theory.giannou.logistic import minimum, norm, steps_to_minimum
from icl.theory.giannou.newton_step import Functions, follow, lacking, newton_step, radius_of_iterates
from icl.theory.rationals import rational


@dataclass
class Theorem5_1(NewtonSteps):
    width: int = setting(2000, 1000, 2000, most=10**6, beyond="the functions take minutes")
    problems: int = setting(2, 1, 2, most=100, beyond="the stacks take minutes")
    steps: int | None = None  # null: one more than exact ones take

    where = "Theorem 5.1; Theorem 1.1; Appendix C.1"
    title = "Theorem 5.1: logistic regression by damped Newton steps"
    claim = (
        "T (11 + 2k) layers compute a point within sqrt(eps (1+mu)/(4 mu)) of the minimum of the regularised "
        "logistic loss, where eps is the largest error of a step."
    )
    quote = (
        r'"if $\epsilon < c$, then the output of the Transformer provides a $\tilde{w}$ satisfying that '
        r'$\|\tilde{w} - \hat{w}\|_2 \leq O(\sqrt{\epsilon(1 + \mu)/(4\mu)})$" (Theorem 5.1, Section 5)'
    )
    formula = (
        r"\|x_T - x^\star\| \le \sqrt{\frac{\varepsilon (1 + \mu)}{4 \mu}}\quad\text{in } T (11 + 2k) \text{ "
        r"layers}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is not None:
            whole("check.steps", self.steps, 1, 200)

    def expected(self) -> str:
        """Errors fall with the width, and must be the smaller the smaller mu is."""
        return super().expected() if self.steps is None and self.width * self.mu >= 12 else UNREFUTED

    def measure(self, m: Measured) -> None:
        mu, rng = rational(self.mu), Random(self.seed)
        losses = [self.draw(rng) for _ in range(self.problems)]
        needed = max(map(steps_to_minimum, losses)) + 1
        steps = needed if self.steps is None else self.steps
        errors, distances, wrong = [], [], []
        layers = newton_step(self.dim, self.context, mu, self.k, Functions.of(mu, self.width))
        for loss in losses:
            start, lowest = fmpq_mat(self.dim, 1), minimum(loss)
            found, x = follow(layers, loss, start, steps)
            errors += found
            distances.append(norm(arb_mat(x - lowest)))
            wrongly = follow(lacking(layers, -5, 2), loss, start, steps)[1]
            wrong.append(norm(arb_mat(wrongly - lowest)))
        eps, distance = greatest(errors), greatest(distances)
        allowed = (eps * (1 + mu) / (4 * mu)).sqrt()
        if steps < needed:
            m.undecided(f"exact Newton steps need {needed} steps; check.steps=null takes as many")
        small = min(fmpq(1, 100), fmpq(4, 100) * mu / (1 + mu * radius_of_iterates(mu)))
        if not eps <= small:  # errors fall with the square of the width
            width = math.ceil(1.2 * self.width * float(eps / small) ** 0.5 / 100) * 100
            m.undecided(
                f"the error of a step must be below {float(arb(small)):.1e}: check.width={width} suffices, "
                "with check.inversion=null"
            )
        about = "distance of the last step from the minimum, over the bound"
        if m.open:  # the theorem says nothing
            m.number("distance_over_bound", distance / allowed, about)
        else:
            m.below("distance_over_bound", distance / allowed, 1, about)
        about = "the same for steps whose gradient lacks mu x, less 1"
        m.control(about, greatest(wrong) / allowed - 1, wants="positive")
        m.number("distance_over_eps", distance / eps, "distance over the largest error of a step")
        m.note(
            "The width is O(d (1+mu)^6 / (eps^4 mu^8)) here and O(d (1+mu)^8 / (eps^4 mu^10)) in Theorem "
            "5.2, from which this theorem is said to follow. The error analysis of appendix C gives the "
            "latter, with a constant C for 1."
        )
        m.note("The distance is proportional to eps: the quadratic phase ends at lambda ~ eps.")
