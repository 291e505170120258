"""Theorem 5.4's two phases as inequalities in lambda, the Newton decrement of g = f / (4 mu), and Lemma B.4.

An error of norm eps <= min(.01, .04 mu / (1 + mu |x|)) has the norm e <= eps sqrt(h / (4 mu)) at a Hessian of
f of norm h, h <= mu + 1/4 by p (1 - p) <= 1/4; and eps <= .02 / lambda, as lambda <= (1 + mu |x|) / (2 mu).
Standard self-concordance then makes a step lower g by lambda^2/(1 + lambda) - e lambda - w*(delta) at least,
w*(t) = -t - log(1 - t) and delta = lambda/(1 + lambda) + e, which is
lambda + e (1 - lambda) + log(1/(1 + lambda) - e).
"""

from __future__ import annotations

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
    one = fmpq_poly([1])
    return [
        *(2 * (1 + t) - 2 * (1 + 2 * t / 3)).coeffs(),
        *_below_omega(t * t, 2 * (1 + 2 * t / 3)),
        *_above_omega(t * t, 2 + t),
        *_below_dual(t * t, 2 - t),
        *_above_dual(t * t, 2 * (1 - t), fmpq(1)),
        *_above_dual(3 * t * t / 5, one, SIXTH),
    ]


def too_sharp() -> list[fmpq]:
    """Return the same for t^2 / (2 + 6t/5) as an upper side of w, which it is not."""
    t = fmpq_poly([0, 1])
    return _above_omega(t * t, 2 + 6 * t / 5)


def _slope(top: fmpq_poly, bottom: fmpq_poly, other: int) -> fmpq_poly:
    """Return (d/dt top/bottom - t/(1 + other t)) times bottom^2 (1 + other t)."""
    t = fmpq_poly([0, 1])
    slope = top.derivative() * bottom - top * bottom.derivative()
    return slope * (1 + other * t) - t * bottom * bottom


def _above_omega(top: fmpq_poly, bottom: fmpq_poly) -> list[fmpq]:
    return list(_slope(top, bottom, 1).coeffs())


def _below_omega(top: fmpq_poly, bottom: fmpq_poly) -> list[fmpq]:
    return [-c for c in _above_omega(top, bottom)]


def _above_dual(top: fmpq_poly, bottom: fmpq_poly, end: fmpq) -> list[fmpq]:
    return _on_interval(_slope(top, bottom, -1), end)


def _below_dual(top: fmpq_poly, bottom: fmpq_poly) -> list[fmpq]:
    return _on_interval(-_slope(top, bottom, -1), fmpq(1))


def _on_interval(p: fmpq_poly, end: fmpq) -> list[fmpq]:
    """Return the coefficients in v of p(t) (1 + v)^deg at t = end v/(1 + v): t in [0, end) is v >= 0."""
    v, total = fmpq_poly([0, 1]), fmpq_poly([0])
    for k, c in enumerate(p.coeffs()):
        total += c * (end * v) ** k * (1 + v) ** (p.degree() - k)
    return list(total.coeffs())
