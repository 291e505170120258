"""giannou's regularised logistic loss (3.5) in balls: value, slope, Newton's decrement and damped step.

f(x) = 1/n sum_i log(1 + exp(-y_i <x, a_i>)) + mu/2 |x|^2, and g = f / (4 mu). A is n x d and rational, x a
column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from random import Random

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.rationals import dot, identity

ZERO = fmpq(0)


@dataclass(frozen=True)
class Logistic:
    A: fmpq_mat
    y: Sequence[int]
    mu: fmpq

    def at(self, x: arb_mat | fmpq_mat) -> "Point":
        return Point(self, arb_mat(x))


@dataclass(frozen=True)
class Point:
    """The loss at one x."""

    loss: Logistic
    x: arb_mat

    @cached_property
    def margins(self) -> list[arb]:
        scores = (arb_mat(self.loss.A) * self.x).entries()
        return [y * score for y, score in zip(self.loss.y, scores, strict=True)]

    @property
    def value(self) -> arb:
        """Return f."""
        terms = [(-margin).exp().log1p() for margin in self.margins]
        return sum(terms, arb(0)) / len(terms) + self.loss.mu / 2 * square(self.x)

    @cached_property
    def gradient(self) -> arb_mat:
        n = self.loss.A.nrows()
        signed = [y * probability(-z) / n for y, z in zip(self.loss.y, self.margins, strict=True)]
        return self.loss.mu * self.x - arb_mat(self.loss.A.transpose()) * arb_mat(n, 1, signed)

    @cached_property
    def hessian(self) -> arb_mat:
        n, d = self.loss.A.nrows(), self.loss.A.ncols()
        bends = [variance(z) / n for z in self.margins]
        weighted = arb_mat(n, d, [bends[i] * self.loss.A[i, j] for i in range(n) for j in range(d)])
        return arb_mat(self.loss.A.transpose()) * weighted + arb_mat(self.loss.mu * identity(d))

    @cached_property
    def direction(self) -> arb_mat:
        """Return H^{-1} grad f."""
        return self.hessian.solve(self.gradient)

    @cached_property
    def decrement(self) -> arb:
        """Return lambda_f = sqrt(grad f^T H^{-1} grad f); lambda of g is that over 2 sqrt(mu)."""
        return (self.gradient.transpose() * self.direction)[0, 0].sqrt()

    @property
    def scaled_decrement(self) -> arb:
        """Return lambda of g."""
        return self.decrement / (2 * arb(self.loss.mu).sqrt())

    @property
    def move(self) -> arb_mat:
        """Return what the damped step adds to x: -2 sqrt(mu) / (2 sqrt(mu) + lambda_f) H^{-1} grad f."""
        return self.direction * (-1 / (1 + self.scaled_decrement))

    def local_norm(self, step: arb_mat) -> arb:
        """Return |step| in the norm of Hess g."""
        return ((step.transpose() * self.hessian * step)[0, 0] / (4 * self.loss.mu)).sqrt()


def probability(z: arb) -> arb:
    return 1 / (1 + (-z).exp())


def variance(z: arb) -> arb:
    return probability(z) * probability(-z)


def square(x: arb_mat) -> arb:
    return sum((entry * entry for entry in x.entries()), arb(0))


def norm(x: arb_mat) -> arb:
    total = square(x)
    return total.sqrt() if total > 0 else arb(0).union(total.abs_upper().sqrt())


def rounded(x: arb_mat, bits: int = 60) -> fmpq_mat:
    """Return the middles of balls, as multiples of 2^-bits."""
    if not all(entry.is_finite() and entry.rad() < 1 for entry in x.entries()):
        raise Blurred
    entries = [fmpq((entry.mid().fmpq() * 2**bits).floor(), 2**bits) for entry in x.entries()]
    return fmpq_mat(x.nrows(), x.ncols(), entries)


def minimum(loss: Logistic) -> fmpq_mat:
    """Return a rational near the minimum."""
    return _descended(loss, loss.mu / 2**50)[0]


def steps_to_minimum(loss: Logistic) -> int:
    """Return after how many exact damped steps from 0 the gradient is at most 1e-12."""
    return _descended(loss, fmpq(1, 10**12))[1]


def _descended(loss: Logistic, tolerance: fmpq) -> tuple[fmpq_mat, int]:
    """Take damped steps from 0 until the gradient is below the tolerance."""
    with ctx.workprec(256):
        at, steps = loss.at(fmpq_mat(loss.A.ncols(), 1)), 0
        while not norm(at.gradient) < tolerance:
            at, steps = loss.at(rounded(at.x + at.move, 100)), steps + 1
        return rounded(at.x, 100), steps


def draw(rng: Random, context: int, dim: int, mu: fmpq) -> Logistic:
    """Draw points of Assumption 3.2, |a_i| <= 1 and the longest about 1, with labels sign <a_i, w>."""
    A = whole_numbers(rng, context, dim)
    w = whole_numbers(rng, dim, 1)
    longest = isqrt(max(sum(int(x.p) ** 2 for x in row) for row in A.tolist())) + 1
    y = [1 if score >= 0 else -1 for score in (A * w).entries()]
    return Logistic(A / longest, y, mu)


def direction(rng: Random, dim: int) -> fmpq_mat:
    """Draw a rational vector of norm at most 1, and of at least 1 - 1e-3."""
    v = whole_numbers(rng, dim, 1)
    return v / fmpq(isqrt(10**6 * int(dot(v, v).p)) + 1, 1000)


def whole_numbers(rng: Random, rows: int, columns: int, most: int = 99) -> fmpq_mat:
    entries = [rng.choice((-1, 1)) * rng.randint(1, most) for _ in range(rows * columns)]
    return fmpq_mat(rows, columns, entries)
