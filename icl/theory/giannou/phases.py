"""Theorem 5.4's two phases as inequalities in lambda, the Newton decrement of g = f / (4 mu), and Lemma B.4.

An error of norm eps <= min(.01, .04 mu / (1 + mu |x|)) has the norm e <= eps sqrt(h / (4 mu)) at a Hessian of
f of norm h, h <= mu + 1/4 by p (1 - p) <= 1/4; and eps <= .02 / lambda, as lambda <= (1 + mu |x|) / (2 mu).
Standard self-concordance then makes a step lower g by lambda^2/(1 + lambda) - e lambda - w*(delta) at least,
w*(t) = -t - log(1 - t) and delta = lambda/(1 + lambda) + e, which is
lambda + e (1 - lambda) + log(1/(1 + lambda) - e).
"""

from flint import arb, fmpq, fmpq_poly

from icl.theory.giannou.balls import positive

SIXTH = fmpq(1, 6)
FAR = fmpq(100)  # lambda from which one bound serves
MOST_STEPS = 10_000


def largest_error(mu: fmpq) -> fmpq:
    """Return the largest eps at any x."""
    return min(fmpq(1, 100), fmpq(4, 100) * mu)


def local_share(mu: fmpq) -> arb:
    """Return sqrt((1/4 + mu) / (4 mu)), the norm at the Hessian of an error of norm 1."""
    return arb((fmpq(1, 4) + mu) / (4 * mu)).sqrt()


def decrease(mu: fmpq, size: arb) -> arb:
    """Return what a step with an error lowers g by at least, from lambda = size."""
    e = (2 / (100 * size)).min(arb(largest_error(mu))) * local_share(mu)
    rest = 1 / (1 + size) - e
    return size + e * (1 - size) + rest.log() if rest > 0 else arb(0, 1)


def decreases_by(mu: fmpq, least: fmpq) -> bool | None:
    """Return whether every step from lambda >= 1/6 lowers g by more than that: on cells up to FAR, and from
    there on by lambda - log(1 + lambda), which rises, and by e lambda <= .02 local_share."""
    if decrease(mu, arb(SIXTH)) < least:
        return False
    error = local_share(mu) / 50
    far = FAR - error - arb(1 + FAR).log() + (1 - error * (1 + FAR) / FAR).log()
    near = positive(lambda size: decrease(mu, size) - least, (SIXTH, FAR))
    return True if near and far > least else None


def constant_times_error(mu: fmpq, eps: arb | fmpq) -> arb:
    """Return C' eps, C' = sqrt((1 + mu)/(4 mu)) / (1 - e)^2 with e = eps sqrt((1 + mu)/(4 mu)): an exact step
    leaves 2 lambda^2 at most, and an error makes that (2 lambda^2 + e/(1-e)) / (1-e)."""
    e = local_error(mu, eps)
    return e / (1 - e) ** 2


def local_error(mu: fmpq, eps: arb | fmpq) -> arb:
    return eps * arb((1 + mu) / (4 * mu)).sqrt()


def steps_of_phase_two(mu: fmpq, accuracy: fmpq) -> int:
    """Return after how many steps lambda' = 3 lambda^2 + C' eps from 1/6 has (3/5) lambda^2 <= accuracy, with
    eps the least of the accuracy and of the largest error. The iterates fall."""
    size, added = arb(SIXTH), constant_times_error(mu, min(accuracy, largest_error(mu)))
    for t in range(MOST_STEPS):
        if fmpq(3, 5) * size**2 <= accuracy:
            return t
        size = 3 * size**2 + added
    raise ArithmeticError(f"no step comes within {accuracy}")


def lemma_b4() -> list[fmpq]:
    """Return coefficients, none of which is negative if Lemma B.4 and (B.7) hold: of the derivatives of upper
    sides less lower sides, which are 0 at t = 0."""
    t = fmpq_poly([0, 1])
    return [
        *(2 * (1 + t) - 2 * (1 + 2 * t / 3)).coeffs(),
        *(-c for c in above_omega(2 * (1 + 2 * t / 3))),
        *above_omega(2 + t),
        *(-c for c in above_dual(2 - t, fmpq(1))),
        *above_dual(2 * (1 - t), fmpq(1)),
        *above_dual(fmpq_poly([fmpq(5, 3)]), SIXTH),
    ]


def above_omega(bottom: fmpq_poly, other: int = 1) -> fmpq_poly:
    """Return the derivative of t^2 / bottom less that of w, t / (1 + t), times their denominators; with
    `other` = -1 less that of w*."""
    t = fmpq_poly([0, 1])
    slope = 2 * t * bottom - t * t * bottom.derivative()
    return slope * (1 + other * t) - t * bottom * bottom


def above_dual(bottom: fmpq_poly, end: fmpq) -> fmpq_poly:
    """Return that for w* times (1 + v)^degree at t = end v/(1 + v): t in [0, end) is v >= 0."""
    v, p = fmpq_poly([0, 1]), above_omega(bottom, -1)
    terms = (c * (end * v) ** k * (1 + v) ** (p.degree() - k) for k, c in enumerate(p.coeffs()))
    return sum(terms, fmpq_poly())
