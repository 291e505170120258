"""A proof that no two layers of ahn's eq. (8) are below the best multiples of I, w ~ N(0, Sigma^-1).

Whitened, f(A, B) = E |(I - S A)(I - S B)|^2 is the same at R^T A R, R^T B R for orthogonal R. With A = t I +
P + p (traceless symmetric, antisymmetric), B = u I + Q + q and c_1, c_2 the sum and the product of the best
scalars, these products vanish at the best scalars:

    scalars              c_1 - t - u,  t u - c_2,  <P, Q>,  <p, q>
    symmetric            P, Q, u P, t Q, {P, Q}, {p, q}, [P, q], [p, Q]      (traceless parts)
    antisymmetric        p, q, u p, t q, [P, Q], [p, q], {P, q}, {p, Q}

f less its least value on multiples of I is E |S_ai S_jk W_ijkl|^2, W the traceless part of A (x) B, which no
other part meets (Schur), plus a combination of inner products <m, m'> of one kind. That is not one
combination only, as the products obey linear relations: <P, t Q> + <Q, u P> = (t + u) <P, Q>. Where it can
be a sum over kinds of sum_mm' G_mm' <m, m'> with positive definite G, the best scalars have the least risk of
all A and B. All combinations are solved for in rationals, at random points; floats only choose among them, at
the largest s with G - s I positive.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, combinations, permutations
from random import Random
from typing import NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from icl.theory.rationals import dot, identity, matrix, rational, trace
from icl.theory.wishart import best_polynomial, covariance_moments
from icl.theory.words import stack_risk

Array = NDArray[np.float64]
Tensor = NDArray[np.object_]

SIZES = (4, 8, 8)  # products of each kind
UNKNOWN = sum(size * (size + 1) // 2 for size in SIZES)
POINTS, FRESH = 64, 4  # the products span at most 57 dimensions
NEAR, STEPS, TINY = 1e-3, 400, 1e-9  # of the search: share of s, most Newton steps, of s


def _places() -> Iterator[NDArray[np.int64]]:
    """Yield where the entries of each G are in one list of their upper triangles, row by row."""
    for start, size in zip((0, *accumulate(s * (s + 1) // 2 for s in SIZES)), SIZES, strict=False):
        place = np.zeros((size, size), np.int64)
        place[np.triu_indices(size)] = np.arange(start, start + size * (size + 1) // 2)
        yield np.maximum(place, place.T)


PLACES = list(_places())


class Certificate(NamedTuple):
    """`grams` are the G by kind; `identity` is f less all that it is the sum of, at points not used."""

    grams: list[fmpq_mat]
    identity: list[fmpq]


def certify(dim: int, context: int, rng: Random) -> Certificate:
    """Search the G. Where the equations contradict each other the identity is seen to be none."""
    least, c_1, c_2 = best_pair(dim, context)
    drawn = [_point(dim, rng) for _ in range(POINTS + FRESH)]
    goals = [excess(A, B, context, least) for A, B in drawn]
    rows = [inner_products(A, B, c_1, c_2) for A, B in drawn]
    equations = matrix([*row, goal] for row, goal in zip(rows[:POINTS], goals[:POINTS], strict=True))
    solved, rank = equations.rref()
    pivots = [next(j for j in range(UNKNOWN + 1) if solved[i, j] != 0) for i in range(rank)]
    pivots = [j for j in pivots if j < UNKNOWN]
    sizes = [float(sum(row[k] for row in rows)) / len(rows) for place in PLACES for k in np.diag(place)]
    entries = _completed(solved, pivots, _centre(solved, pivots, sizes))
    grams = [matrix([[entries[k] for k in row] for row in place.tolist()]) for place in PLACES]
    fresh = zip(drawn[POINTS:], goals[POINTS:], strict=True)
    return Certificate(grams, [goal - sum_of_squares(grams, A, B, c_1, c_2) for (A, B), goal in fresh])


def best_pair(dim: int, context: int) -> tuple[fmpq, fmpq, fmpq]:
    """Return the least risk of two multiples of I, and the sum and the product of the best."""
    q, least = best_polynomial(covariance_moments(dim, context, 5), 2)
    return least, -q[1], q[2]


def excess(A: fmpq_mat, B: fmpq_mat, context: int, least: fmpq) -> fmpq:
    """Return f less its least value on multiples of I and less the part of the traceless tensor."""
    return stack_risk([A, B], context) - least - mean_square(traceless(A, B), rational(context))


def sum_of_squares(grams: Sequence[fmpq_mat], A: fmpq_mat, B: fmpq_mat, c_1: fmpq, c_2: fmpq) -> fmpq:
    """Return the sum over kinds of sum_mm' G_mm' <m, m'>."""
    entries = (G[i, j] for G in grams for i in range(G.nrows()) for j in range(i, G.nrows()))
    products = zip(entries, inner_products(A, B, c_1, c_2), strict=True)
    return sum((x * y for x, y in products), fmpq(0))


def inner_products(A: fmpq_mat, B: fmpq_mat, c_1: fmpq, c_2: fmpq) -> list[fmpq]:
    """Return what the entries of the upper triangles of all G are multiplied with."""
    return [
        (1 if i == j else 2) * dot(kind[i], kind[j])
        for kind in products(A, B, c_1, c_2)
        for i in range(len(kind))
        for j in range(i, len(kind))
    ]


def pivots_of(G: fmpq_mat) -> list[fmpq]:
    """Return the pivots of elimination up to the first that is not positive: G is positive definite where
    all are."""
    rows, size, found = G.tolist(), G.nrows(), []
    for k in range(size):
        found.append(rows[k][k])
        if rows[k][k] <= 0:
            break
        for i in range(k + 1, size):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return found


def _point(dim: int, rng: Random) -> list[fmpq_mat]:
    return [matrix([[rng.randint(-2, 2) for _ in range(dim)] for _ in range(dim)]) for _ in range(2)]


def _completed(solved: fmpq_mat, pivots: Sequence[int], entries: Iterable[float]) -> list[fmpq]:
    """Return entries that solve the equations exactly: those that are free are kept."""
    found = [rational(float(x)) for x in entries]
    free = [k for k in range(UNKNOWN) if k not in set(pivots)]
    for row, pivot in enumerate(pivots):
        found[pivot] = solved[row, UNKNOWN] - sum((solved[row, k] * found[k] for k in free), fmpq(0))
    return found


def _centre(solved: fmpq_mat, pivots: Sequence[int], sizes: Sequence[float]) -> Array:
    """Return the entries of G with the largest least eigenvalue s, in units in which products have size 1.

    Newton's method on -weight s - sum log det (G - s I), with a growing weight. It is self-concordant: steps
    damped by the Newton decrement stay where it is finite (Nesterov and Nemirovskii 1994).
    """
    free = [k for k in range(UNKNOWN) if k not in set(pivots)]
    some_V, relations_VZ = np.zeros(UNKNOWN), np.zeros((UNKNOWN, len(free)))
    for row, pivot in enumerate(pivots):
        some_V[pivot] = float(solved[row, UNKNOWN])
        relations_VZ[pivot] = [-float(solved[row, k]) for k in free]
    relations_VZ[free, range(len(free))] = 1
    roots = iter(np.sqrt([x if x > 0 else 1.0 for x in sizes]))
    units = [np.array([next(roots) for _ in range(size)]) for size in SIZES]
    scale_V = np.concatenate([np.outer(x, x)[np.triu_indices(len(x))] for x in units])
    basis_VZ, _ = np.linalg.qr(scale_V[:, None] * relations_VZ)
    G0s = [(scale_V * some_V)[place] for place in PLACES]
    # of G - s I along each relation, and along s
    slopes = [np.stack([*basis_VZ.T[:, place], -np.eye(len(place))]) for place in PLACES]
    least = min(float(np.linalg.eigvalsh(G)[0]) for G in G0s)
    at, weight = np.array([0.0] * len(free) + [least - abs(least) - TINY]), 1.0

    for _ in range(STEPS):
        gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
        gradient[-1] = -weight
        for G0, slope in zip(G0s, slopes, strict=True):
            ratio = np.linalg.inv(G0 + np.tensordot(at, slope, 1)) @ slope
            gradient -= np.trace(ratio, axis1=1, axis2=2)
            hessian += np.einsum("yij,zji->yz", ratio, ratio)
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        gain = float(-gradient @ step)
        at = at + step / (1 + max(gain, 0.0) ** 0.5)
        if gain < NEAR:
            if sum(SIZES) < NEAR * weight * abs(at[-1]) or NEAR * weight > 1 / TINY:
                break
            weight *= 4
    return (scale_V * some_V + basis_VZ @ at[:-1]) / scale_V


def products(A: fmpq_mat, B: fmpq_mat, c_1: fmpq, c_2: fmpq) -> list[list[fmpq_mat]]:
    """Return the products, by kind."""
    d, one = A.nrows(), identity(A.nrows())
    t, u = trace(A) / d, trace(B) / d
    P, Q = ((x + x.transpose()) / 2 - s * one for x, s in ((A, t), (B, u)))
    p, q = ((x - x.transpose()) / 2 for x in (A, B))

    def both(x: fmpq_mat, y: fmpq_mat) -> fmpq_mat:
        total = x * y + y * x
        return total - trace(total) / d * one

    def bracket(x: fmpq_mat, y: fmpq_mat) -> fmpq_mat:
        return x * y - y * x

    scalars = [c_1 - t - u, t * u - c_2, dot(P, Q), dot(p, q)]
    return [
        [matrix([[x]]) for x in scalars],
        [P, Q, u * P, t * Q, both(P, Q), both(p, q), bracket(P, q), bracket(p, Q)],
        [p, q, u * p, t * q, bracket(P, Q), bracket(p, q), both(P, q), both(p, Q)],
    ]


def traceless(A: fmpq_mat, B: fmpq_mat) -> Tensor:
    """Return A (x) B without its traces: the sum over pairs of places of delta times the trace has these
    eigenvalues, and 0 on what is traceless."""
    d = A.nrows()
    W = np.multiply.outer(np.array(A.tolist(), dtype=object), np.array(B.tolist(), dtype=object))
    delta = np.array(identity(d).tolist(), dtype=object)
    for value in {d + 4, d + 2, d, d - 2, 2 * d + 4, 2 * d - 2} - {0}:
        total = 0 * W
        for pair in combinations(range(4), 2):
            inner = np.trace(W, axis1=pair[0], axis2=pair[1])
            total = total + np.moveaxis(np.multiply.outer(delta, inner), (0, 1), pair)
        W = W - total / fmpq(value)
    return W


def mean_square(W: Tensor, n: fmpq) -> fmpq:
    """Return E |S_ai S_jk W_ijkl|^2 of a traceless W. Wick's pairings join the places i, j, k of W to
    those of W in six orders, each in seven ways."""
    d = len(W)
    own, other = (n**2 + (d + 1) * n + 4) / n**3, (3 * n + d + 3) / n**3
    orders = ((own if order[0] == 0 else other, order) for order in permutations(range(3)))
    return sum((c * (W * W.transpose(*order, 3)).sum() for c, order in orders), fmpq(0))
