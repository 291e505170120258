"""Bounds from both sides on |x| after a damped Newton step of the regularised logistic loss, from |x| = r,
whatever the problem (|a_i| <= 1). They tend to r - 2.

With rho = grad f - H x, of norm at most 1 (every |p + p (1 - p) m| <= 1, m the margin), a step is x' = (1 -
eta) x - eta H^{-1} rho with |H^{-1} rho| <= 1/mu, and lambda_f = |H^{1/2} x + H^{-1/2} rho| has
(r - 1/mu)^+ <= lambda_f / sqrt(mu) <= r + 1/mu + sqrt(BEND / mu), as x^T H x <= mu r^2 + max p (1 - p) m^2.
eta = 2 / (2 + lambda_f / sqrt(mu)).
"""

from flint import arb, fmpq

from icl.theory.giannou.logistic import Point, norm

BEND = fmpq(44, 100)  # above the largest p (1 - p) m^2, which is about .4392


def growth_bounds(mu: fmpq, r: arb) -> tuple[arb, arb]:
    """Return bounds of |x'| - |x| from below and above."""
    least = 2 / (2 + r + 1 / mu + arb(BEND / mu).sqrt())
    most = 2 / (2 + (r - 1 / mu).max(arb(0)))
    inside = r < 1 / mu
    return -most * (r + 1 / mu), (most if inside else least) * (1 / mu - r)


def constant_of(mu: fmpq, error: fmpq) -> arb:
    """Return C for error < 2: with errors of that norm |x'| <= |x| from C on and |x'| <= C below.

    It is where the upper bound on |x'| meets |x|, error = 2 (C - 1/mu) / (2 + C + 1/mu + sqrt(BEND / mu)).
    Below C that bound is at most 1/mu + error up to |x| = 1/mu, and rises with |x| from there on.
    """
    half = error / 2
    return (1 / mu + half * (2 + 1 / mu + arb(BEND / mu).sqrt())) / (1 - half)


def beyond(mu: fmpq, error: fmpq) -> fmpq:
    """Return |x| from which an outward error > 2 lengthens x in every step that follows.

    |x'| - |x| >= error - 2 (r + 1/mu) / (2 + r - 1/mu) for r >= 1/mu; twice the root, to be well inside.
    """
    return 2 * max(1 / mu, (2 / mu - error * (2 - 1 / mu)) / (error - 2)) + 1


def growth(at: Point, share: fmpq) -> arb:
    """Return |x'| - |x| after that share of a step s, by s (2 x + s) / (|x + s| + |x|)."""
    step = at.move * share
    return (step.transpose() * (2 * at.x + step))[0, 0] / (norm(at.x + step) + norm(at.x))
