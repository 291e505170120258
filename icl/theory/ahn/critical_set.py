"""A stack on the sets S of ahn's Theorems 3 and 4, and near them, whitened: x, w ~ N(0, I). Rationals.

In the sign of eq. (11) A_l = -a_l I and B_l = b_l I on S. S_n is the covariance of n examples. There the
error on a prompt is w.q(S_n) x, and from p = q = 1 a layer makes of them
    q <- q (1 - a_l s p^2),   p <- p (1 - beta_l s p^2),   beta_l = a_l b_l.
In eq. (8) p = 1. The last B has no effect and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import arb, fmpq, fmpq_mat, fmpq_poly

from icl.theory.ahn.forward import mean_label, positive, query_label, second_moment
from icl.theory.rationals import column, dot, identity, reflection, trace

S = fmpq_poly([0, 1])


def query_polynomial(a: Sequence[fmpq], beta: Sequence[fmpq] = ()) -> fmpq_poly:
    """Return q."""
    q = p = fmpq_poly([1])
    for layer, step in enumerate(a):
        at = S * p * p
        q *= 1 - step * at
        if layer < len(beta):
            p *= 1 - beta[layer] * at
    return q


def label(Z: fmpq_mat, a: Sequence[fmpq], b: Sequence[fmpq], inverse: fmpq_mat) -> fmpq:
    """Return the query's label after layers of eq. (11) at A_l = -a_l Sigma^-1, B_l = b_l I, begun at 0."""
    return query_label(Z, [-x * inverse for x in a], [x * identity(inverse.nrows()) for x in b])


def label_by_polynomial(Z: fmpq_mat, a: Sequence[fmpq], b: Sequence[fmpq], inverse: fmpq_mat) -> fmpq:
    """Return w.(q(G Sigma^-1) - 1) x, where w.G = sum y x / n needs no w."""
    d, n, total = inverse.nrows(), Z.ncols() - 1, fmpq(0)
    power = inverse * column(Z[i, n] for i in range(d))
    G, labels = second_moment(Z), mean_label(Z)
    q = query_polynomial(a, [s * t for s, t in zip(a, b, strict=False)])
    for c in q.coeffs()[1:]:
        total += c * dot(labels, power)
        power = inverse * (G * power)
    return total


def changes_by_reflection(rng: Random, A: Sequence[fmpq_mat], B: Sequence[fmpq_mat]) -> list[fmpq]:
    """Return by how much a reflection of a prompt and of the direction changes each matrix's derivative."""
    d = A[0].nrows()
    half, along, R = positive(rng, d, d), positive(rng, d, d), reflection(positive(rng, d, 1))
    G = half + half.transpose()
    return [
        slope_of_prompt(G, A, B, k, along) - slope_of_prompt(R * G * R, A, B, k, R * along * R)
        for k in range(len(A) + len(B))
    ]


@dataclass(frozen=True)
class Dual:
    """A matrix that moves, and its velocity."""

    value: fmpq_mat
    slope: fmpq_mat

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    @property
    def transposed(self) -> Dual:
        return Dual(self.value.transpose(), self.slope.transpose())


def slope_of_prompt(
    covariance: fmpq_mat, A: Sequence[fmpq_mat], B: Sequence[fmpq_mat], at: int, along: fmpq_mat
) -> fmpq:
    """Return the derivative of the risk, given the examples, as matrix `at` of (*A, *B) moves `along`: of
    |K|^2 where w.K x is the error of eq. (11)."""
    still = 0 * covariance
    moving = [Dual(x, along if k == at else still) for k, x in enumerate([*A, *B])]
    q = p = Dual(identity(covariance.nrows()), still)
    for layer, weights in enumerate(moving[: len(A)]):
        step = Dual(covariance, still) * p.transposed * weights * p
        q += q * step
        if layer < len(B):
            p += moving[len(A) + layer] * p * step
    return 2 * dot(q.value, q.slope)


def on_s(x: fmpq_mat) -> fmpq:
    """Return the multiple of I that is nearest to a matrix."""
    return trace(x) / x.nrows()


def distance_from_s(matrices: Sequence[fmpq_mat]) -> arb:
    """Return the largest Dist(M, I) of the figures: a matrix's part off the multiples of I, relative."""
    shares = [1 - on_s(x) ** 2 * x.nrows() / dot(x, x) for x in matrices if dot(x, x) != 0]
    return arb(max(shares, default=fmpq(0))).sqrt()
