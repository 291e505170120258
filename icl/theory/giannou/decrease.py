"""Appendix E.1's bound h on the change of the scaled loss in one inexact damped Newton step, in rationals and
balls.

h(x) = -x^2/(1+x) + c + w(delta), w(t) = -t - log(1 - t), delta^2 = x^2/(1+x)^2 - 2c/(1+x) + z, with the
Newton decrement x, c = eps^T grad g and z = eps^T Hess g eps of an error eps. With s = x/(1+x) and u = 1 - s

    dh/dx = u^2 - 1 + u^2 (s + c) / (1 - delta),   dh/dc = (s - delta) / (1 - delta).

For z = 0 c is (s^2 - delta^2)/(2u), and dh/dx = -s - u (delta - s)^2 / (2 (1 - delta)). In c h falls to
delta = s and then rises, so that over an interval of c it is largest at an end.
"""

from typing import Any

from flint import arb, fmpq


def squared_delta(x: Any, c: Any, z: Any) -> Any:
    """Return delta^2; where it is negative no error has such c and z."""
    return x * x / (1 + x) ** 2 - 2 * c / (1 + x) + z


def h(x: fmpq, c: fmpq, z: fmpq) -> arb:
    delta = arb(squared_delta(x, c, z)).sqrt()
    return -x * x / (1 + x) + c - delta - (-delta).log1p()


def slope(x: Any, c: Any, delta: Any) -> Any:
    """Return dh/dx."""
    u = 1 / (1 + x)
    return u * u - 1 + u * u * (1 - u + c) / (1 - delta)


def fall(x: Any, delta: Any) -> Any:
    """Return -dh/dx at z = 0 and the c of this delta, in the form that is seen to be positive."""
    s = x / (1 + x)
    return s + (1 - s) * (delta - s) ** 2 / (2 * (1 - delta))


def c_of(x: Any, delta: Any, z: Any) -> Any:
    s = x / (1 + x)
    return (s * s - delta * delta + z) / (2 * (1 - s))


def largest_over(x: fmpq, c: fmpq, z: fmpq) -> arb:
    """Return the largest h over errors from -c to c and from 0 to z."""
    return h(x, -c, z).max(h(x, c, z))


def error_allowed(mu: fmpq) -> fmpq:
    """Return the largest z, eps^2 (1+mu)/(4 mu), at the paper's own eps <= min(.01, .04 mu/(1+mu))."""
    eps = min(fmpq(1, 100), fmpq(1, 25) * mu / (1 + mu))
    return eps**2 * (1 + mu) / (4 * mu)
