"""Newton's iteration (3.4) for an inverse, of any order: its steps counted, and those of gradient descent.

I - X_{t+1} A = (I - X_t A)^k. From X_0 = alpha A^T the residual has the eigenvalues 1 - alpha s^2 of A's
singular values s; the authors' alpha is 1 / (s_1^2 + s_d^2). Rationals; logarithms in balls.
"""

from math import comb

from flint import arb, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.rationals import identity

EXACT = 64  # powers up to this one are compared as rationals


def step(X: fmpq_mat, A: fmpq_mat, order: int) -> fmpq_mat:
    """Return X' = X sum_m (-1)^m C(k, m + 1) (A X)^m, m < k, as (3.4) is printed."""
    power = identity(A.nrows())
    total = 0 * power
    for m in range(order):
        total += (-1) ** m * comb(order, m + 1) * power
        power = power * A * X
    return X * total


def authors_residual(kappa: fmpq) -> fmpq:
    """Return the largest |1 - alpha s^2| of the authors' start, at the condition kappa of A."""
    return kappa**2 / (1 + kappa**2)


def residual(alpha: fmpq, kappa: fmpq) -> fmpq:
    """Return the largest |1 - alpha s^2| for singular values from 1 to 1 / kappa."""
    return max(abs(1 - alpha), abs(1 - alpha / kappa**2))


def steps_to(order: int, residual: fmpq, accuracy: fmpq) -> int:
    """Return the least t with residual^(order^t) <= accuracy, both below 1."""
    t = 0
    while not falls_to(residual, order**t, accuracy):
        t += 1
    return t


def descent_steps(rate: fmpq, accuracy: fmpq) -> int:
    """Return the least t with rate^t <= accuracy, both below 1."""
    about = (arb(accuracy).log() / arb(rate).log()).mid().fmpq() if rate else fmpq(0)
    t = max(0, int(about.floor()) - 1)
    while not falls_to(rate, t, accuracy):
        t += 1
    return t


def falls_to(number: fmpq, power: int, accuracy: fmpq) -> bool:
    """Return whether number^power <= accuracy, 0 <= number < 1."""
    if power <= EXACT or number == 0:
        return bool(number**power <= accuracy)
    left, right = power * arb(number).log(), arb(accuracy).log()
    if left.overlaps(right):
        raise Blurred
    return bool(left < right)


def printed_steps(mu: fmpq, eps: fmpq, base: arb) -> arb:
    """Return 2 log kappa + log log ((1 + mu)^3 / (eps^2 mu^2)) of Theorems 5.1 and 5.2 in logarithms to this
    base, kappa = (1 + mu) / mu."""
    log = base.log()
    return (2 * arb((1 + mu) / mu).log() + (arb(1 / needed_accuracy(mu, eps)).log() / log).log()) / log


def needed_accuracy(mu: fmpq, eps: fmpq) -> fmpq:
    """Return eps^2 mu^2 / (1 + mu)^3, to which the proof needs the Hessian's inverse."""
    return eps**2 * mu**2 / (1 + mu) ** 3
