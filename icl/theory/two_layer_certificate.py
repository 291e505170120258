"""A proof that no two layers of ahn's family (8) are below the best multiples of I, w ~ N(0, Sigma^{-1}).

Whitened, f(A, B) = E |(I - S A)(I - S B)|^2 is biquadratic, and the same at R^T A R, R^T B R for orthogonal
R. With A = t I + P + p (traceless symmetric, antisymmetric), B = u I + Q + q and c_1, c_2 the sum and the
product of the best scalars, so are the products <m, m'> of any two of a kind:

    scalars              c_1 - t - u,  t u - c_2,  <P, Q>,  <p, q>
    symmetric            P, Q, u P, t Q, {P, Q}, {p, q}, [P, q], [p, Q]      (traceless parts)
    antisymmetric        p, q, u p, t q, [P, Q], [p, q], {P, q}, {p, Q}
    of four indices      the traceless part of A (x) B, by Young symmetrizers

All vanish at the best scalars. f less its value there is a combination of these products, and not of one
only, because they obey linear relations: <P, t Q> + <Q, u P> = (t + u) <P, Q>. Where one is a sum over kinds
of sum_mm' G_mm' <m, m'> with positive definite G, the best scalars have the least risk of all A and B.
Such G are searched at the largest s with all G - s I positive definite, by a barrier and Newton's method.
How they were found does not matter. The identity is tested at points that were not used: an error e of it,
all products being of mean square 1, changes G by e times a condition number, and G allows for s.

K points, D covariates, M products of a kind, V entries of all G (upper triangles), Z relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import torch
from numpy.typing import NDArray

from icl.theory.expected_traces import sparse_a_risk
from icl.theory.quadrature import gauss_rule
from icl.theory.wishart import trace_moment

Array = NDArray[np.float64]
Blocks = tuple[tuple[int, ...], ...]

POINTS, FRESH = 260, 40  # the products span some 70 dimensions
SAME = 1e-9  # relative: smaller singular values are rounding
NEAR = 1e-3  # of s, to its largest value
STEPS = 400
TABLEAUX: tuple[tuple[Blocks, Blocks], ...] = (  # rows and columns, for each shape of four boxes
    (((0, 1, 2, 3),), ((0,), (1,), (2,), (3,))),
    (((0, 1, 2), (3,)), ((0, 3), (1,), (2,))),
    (((0, 1), (2, 3)), ((0, 2), (1, 3))),
    (((0, 1), (2,), (3,)), ((0, 2, 3), (1,))),
    (((0,), (1,), (2,), (3,)), ((0, 1, 2, 3),)),
)


@dataclass(frozen=True, eq=False)
class Certificate:
    """`margin` is the least eigenvalue of all G, `error` the largest error of the identity at fresh points
    times the condition of the fit, both as shares of the trace of all G; `grams` are the G by kind."""

    margin: float
    error: float
    grams: tuple[Array, ...]


def certify(dim: int, context: int, rng: np.random.Generator, scale: float = 1.0) -> Certificate:
    """Search the G. `scale` multiplies the best scalars; at others than these there is no identity."""
    a_L = scale * best_scalars(dim, context)
    at_best_LDD = a_L[:, None, None] * np.eye(dim)
    A_KLDD = _points(a_L, dim, rng)
    goal_K = _risk(A_KLDD, context) - _risk(at_best_LDD[None], context)
    rows_KV, sizes = _rows(_kinds(A_KLDD, a_L))
    # every point counts alike
    weight_K = 1 / np.linalg.norm(rows_KV, axis=1)
    rows_KV, goal_K = rows_KV * weight_K[:, None], goal_K * weight_K
    left, values, right = np.linalg.svd(rows_KV[:POINTS])
    rank = int((values > SAME * values[0]).sum())
    some_V = right[:rank].T @ ((left[:, :rank].T @ goal_K[:POINTS]) / values[:rank])
    found_V = _centre(some_V, right[rank:], sizes)
    grams = tuple(_symmetric(part, M) for part, M in _parts(found_V, sizes))
    trace = sum(float(np.trace(G)) for G in grams)
    margin = min(float(np.linalg.eigvalsh(G)[0]) for G in grams)
    error = float(np.abs(rows_KV @ found_V - goal_K)[POINTS:].max()) / float(values[rank - 1])
    return Certificate(margin / trace, POINTS**0.5 * error / trace, grams)


def best_scalars(dim: int, context: int) -> Array:
    """Return the best two multiples of I: 1 / a are the roots of the polynomial of degree two that is
    orthogonal to 1 and s under the weight s."""
    moments = [Fraction(trace_moment(k, dim, context), context**k) for k in range(1, 6)]
    return np.sort(1 / gauss_rule(moments, 2)[0])


def _points(a_L: Array, dim: int, rng: np.random.Generator) -> Array:
    """(K, 2, D, D): multiples of I, and what is not, both of about the size of the best scalars."""
    shape = (POINTS + FRESH, 2, 1, 1)
    noise = rng.standard_normal((POINTS + FRESH, 2, dim, dim)) / dim**0.5
    scaled = rng.uniform(0.2, 1, shape) * noise + rng.uniform(-1, 2, shape) * np.eye(dim)
    return scaled * np.prod(a_L) ** 0.5


def _risk(A_KLDD: Array, context: int) -> Array:
    identity_DD = torch.eye(A_KLDD.shape[-1], dtype=torch.float64)
    return sparse_a_risk(torch.from_numpy(A_KLDD), identity_DD, identity_DD, context).numpy()


def _kinds(A_KLDD: Array, a_L: Array) -> list[Array]:
    """Return all m of each kind, (K, M, entries)."""
    K, _, D, _ = A_KLDD.shape
    eye = np.eye(D)
    trace_KL = np.trace(A_KLDD, axis1=2, axis2=3) / D
    t, u = trace_KL.T[..., None, None]
    mirrored = A_KLDD.swapaxes(2, 3)
    P, Q = np.moveaxis((A_KLDD + mirrored) / 2 - trace_KL[..., None, None] * eye, 1, 0)
    p, q = np.moveaxis((A_KLDD - mirrored) / 2, 1, 0)

    def dot(X: Array, Y: Array) -> Array:
        return (X * Y).sum((1, 2), keepdims=True)

    def both(X: Array, Y: Array) -> Array:
        """Return {X, Y} without its trace."""
        sum_KDD = X @ Y + Y @ X
        return sum_KDD - np.trace(sum_KDD, axis1=1, axis2=2)[:, None, None] / D * eye

    def bracket(X: Array, Y: Array) -> Array:
        return X @ Y - Y @ X

    kinds = [
        [a_L.sum() - t - u, t * u - a_L.prod(), dot(P, Q), dot(p, q)],
        [P, Q, u * P, t * Q, both(P, Q), both(p, q), bracket(P, q), bracket(p, Q)],
        [p, q, u * p, t * q, bracket(P, Q), bracket(p, q), both(P, q), both(p, Q)],
        *_four_indices(A_KLDD),
    ]
    return [np.stack([m.reshape(K, -1) for m in kind], 1) for kind in kinds]


def _four_indices(A_KLDD: Array) -> Iterator[list[Array]]:
    """Apply the Young symmetrizer of each shape to permutations of the traceless part of A (x) B."""
    K, _, D, _ = A_KLDD.shape
    traces = _trace_tensors(D)
    product_KE = np.einsum("kab,kcd->kabcd", A_KLDD[:, 0], A_KLDD[:, 1]).reshape(K, -1)
    traceless = (product_KE - product_KE @ traces @ traces.T).reshape(K, D, D, D, D)
    for rows, columns in TABLEAUX:
        symmetrizer = [
            (_sign(column), tuple(row[place] for place in column))
            for row in _within(rows)
            for column in _within(columns)
        ]
        for_all = [
            [sign * _moved(_moved(traceless, first), order) for sign, order in symmetrizer]
            for first in permutations(range(4))
        ]
        yield [np.sum(terms, axis=0) for terms in for_all]


def _trace_tensors(D: int) -> Array:
    """Return an orthonormal basis (D^4, .) of the tensors delta_ij (x) X_kl, at any two of four places."""
    eye = np.eye(D)
    delta = np.einsum("ab,ce,df->abcdef", eye, eye, eye).reshape(D, D, D, D, D * D)
    columns = [
        np.moveaxis(delta, range(4), [*pair, *(k for k in range(4) if k not in pair)]).reshape(D**4, -1)
        for pair in combinations(range(4), 2)
    ]
    basis, values, _ = np.linalg.svd(np.concatenate(columns, 1), full_matrices=False)
    return basis[:, values > SAME * values[0]]


def _moved(X_KDDDD: Array, order: Sequence[int]) -> Array:
    return X_KDDDD.transpose(0, *(1 + place for place in order))


def _within(blocks: Blocks) -> Iterator[tuple[int, ...]]:
    """All permutations of four places that keep every block."""
    for moved in product(*(permutations(block) for block in blocks)):
        to = dict(zip(sum(blocks, ()), sum(moved, ()), strict=True))
        yield tuple(to[place] for place in range(4))


def _sign(order: Sequence[int]) -> int:
    return (-1) ** sum(order[i] > order[j] for i, j in combinations(range(len(order)), 2))


def _rows(kinds: Sequence[Array]) -> tuple[Array, list[int]]:
    """Return the coefficients (K, V) of the entries of all G, and how many products each kind has.

    Of each kind combinations are taken that have mean square 1 and are independent: at D = 2 few are.
    """
    rows, sizes = [], []
    for m_KME in kinds:
        mean_MM = np.einsum("kme,kne->mn", m_KME, m_KME) / len(m_KME)
        values, axes = np.linalg.eigh(mean_MM)
        kept = values > SAME * max(values[-1], SAME)
        one_KME = np.einsum("kme,mn->kne", m_KME, axes[:, kept] / np.sqrt(values[kept]))
        upper = np.triu_indices(one_KME.shape[1])
        products_KMM = np.einsum("kme,kne->kmn", one_KME, one_KME)
        rows.append(products_KMM[:, *upper] * np.where(upper[0] == upper[1], 1, 2))
        sizes.append(one_KME.shape[1])
    return np.concatenate(rows, 1), sizes


def _parts(entries_V: Array, sizes: Sequence[int]) -> list[tuple[Array, int]]:
    """Cut (..., V) into the entries of each G; kinds without products are left out."""
    ends = np.cumsum([M * (M + 1) // 2 for M in sizes])[:-1]
    return [(part, M) for part, M in zip(np.split(entries_V, ends, -1), sizes, strict=True) if M]


def _symmetric(entries: Array, M: int) -> Array:
    G = np.zeros((*entries.shape[:-1], M, M))
    rows, columns = np.triu_indices(M)
    G[..., rows, columns] = G[..., columns, rows] = entries
    return G


def _centre(some_V: Array, relations_ZV: Array, sizes: Sequence[int]) -> Array:
    """Return the entries of G, some_V plus relations, with the largest least eigenvalue s.

    Newton's method on -weight s - sum log det (G - s I), with a growing weight.
    """
    G0s = [_symmetric(part, M) for part, M in _parts(some_V, sizes)]
    slopes = [  # of G - s I along each relation, and along s
        np.concatenate([_symmetric(part, M), -np.eye(M)[None]]) for part, M in _parts(relations_ZV, sizes)
    ]
    at = np.zeros(len(relations_ZV) + 1)
    least = min(float(np.linalg.eigvalsh(G)[0]) for G in G0s)
    at[-1], weight = least - abs(least) - SAME, 1.0

    def barrier(point: Array) -> float:
        total = -weight * point[-1]
        for G0, slope in zip(G0s, slopes, strict=True):
            try:
                root = np.linalg.cholesky(G0 + np.tensordot(point, slope, 1))
            except np.linalg.LinAlgError:
                return np.inf
            total -= 2 * float(np.log(np.diag(root)).sum())
        return total

    for _ in range(STEPS):
        gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
        gradient[-1] = -weight
        for G0, slope in zip(G0s, slopes, strict=True):
            ratio = np.linalg.inv(G0 + np.tensordot(at, slope, 1)) @ slope
            gradient -= np.trace(ratio, axis1=1, axis2=2)
            hessian += np.einsum("yij,zji->yz", ratio, ratio)
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        gain, size, before = float(-gradient @ step), 1.0, barrier(at)
        while barrier(at + size * step) > before - 1e-4 * size * gain and size > SAME:
            size /= 2
        at = at + size * step
        if gain < NEAR:
            if sum(sizes) < NEAR * weight * abs(at[-1]) or NEAR * weight > 1 / SAME:
                break
            weight *= 4
    return some_V + at[:-1] @ relations_ZV
