"""Damped Newton steps with errors, the worst of three, and what Theorem 5.4 says of each."""

from dataclasses import dataclass, field
from random import Random

from flint import arb, arb_mat, fmpq

from icl.theory.giannou.logistic import Point, direction, minimum, norm, rounded
from icl.theory.giannou.phases import SIXTH, constant_times_error

SETTLED = 8  # steps that follow the last of phase one


@dataclass
class Runs:
    """Measurements of steps, and where they ended."""

    ratios: list[arb] = field(default_factory=list)  # lambda' over 3 lambda^2 + C' eps, in phase two
    wrong: list[arb] = field(default_factory=list)  # the same, the error of local norm 4 C' eps
    gaps: list[arb] = field(default_factory=list)  # g - g* over eps, at the end

    def follow(self, at: Point, rng: Random) -> None:
        """Take steps from a point until it is in phase two, and SETTLED more."""
        loss, left = at.loss, SETTLED
        while left:
            before, eps, stepped = at, error_allowed(at), loss.at(rounded(at.x + at.move))
            drawn = arb_mat(direction(rng, at.x.nrows()))
            ways = [step * (eps / norm(step)) for step in (stepped.gradient, drawn, -drawn)]
            ends = [loss.at(rounded(stepped.x + way)) for way in ways]
            if before.scaled_decrement >= SIXTH:
                at = max(ends, key=lambda end: float(end.value))
                continue
            at, left = max(ends, key=lambda end: float(end.scaled_decrement)), left - 1
            added = constant_times_error(loss.mu, eps)
            bound = 3 * before.scaled_decrement**2 + added
            self.ratios.append(at.scaled_decrement / bound)
        far = loss.at(stepped.x + drawn * (4 * added / stepped.local_norm(drawn)))
        self.wrong.append(far.scaled_decrement / bound)
        self.gaps.append((at.value - loss.at(minimum(loss)).value) / (4 * loss.mu) / eps)


def error_allowed(at: Point) -> arb:
    """Return the proof's eps: min(.01, .04 mu / (1 + mu |x|))."""
    mu = at.loss.mu
    return (fmpq(4, 100) * mu / (1 + mu * norm(at.x))).min(arb(fmpq(1, 100)))
