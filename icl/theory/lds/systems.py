"""Laws of the observations y_1 .. y_T of random linear systems: x_t = A x_{t-1} + w_t, y_t = c.x_t + v_t.

x_0 ~ N(0, start I); the state of y_1 has moved once. Given the system y is Gaussian. A law is a list of
weights and covariances C, of which the weighted sum of p(C) is the mean of p over the systems for every
polynomial p of degree 3 at most: all that a layer's risk needs. Entries of C are polynomials of one
eigenvalue v, uniform on [-1, 1], over which a mean is taken last.

A symmetric, its eigenvalues v_m independent: C = noise I + r sum_m b_m g(v_m), g the covariance of one mode,
r = |c|^2 and b_m the squared coordinates of c / |c| in A's eigenvectors. With delta = g - E g and F(x) =
p(noise I + x E g), terms with a single delta_m have mean 0 and at degree 3 no others have two different
ones, so that

    E p(C) = E F(r) + d E q2(r, b),    q2(x, b) = E_v p(noise I + x E g + x b delta(v)) - F(x).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from random import Random
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat, fmpq_poly

from icl.theory.rationals import ZERO, column, diagonal, identity, matrix, rational

Covariance = list[list[fmpq_poly]]
System = tuple[fmpq_mat, fmpq_mat]  # A, and c as a column

HALF_WIDTH = 5  # c is uniform on [-5, 5]^d in settings (b), (c) and (d)
SPREAD = fmpq(4, 5), fmpq(1)  # of the process noise in (d)
RATIO = 2  # of R's largest to its smallest diagonal entry in (c)
STEPS = 256  # so that powers of A have few digits


class Noise(NamedTuple):
    """Variances of w (a number), of v, and of x_0."""

    process: fmpq
    observation: fmpq
    start: fmpq

    def covariance(self, setting: str, d: int) -> fmpq_mat:
        """Return that of w. In (d) its eigenvectors are those of the unit vectors: A's are Haar."""
        if setting != "d":
            return self.process * identity(d)
        low, high = SPREAD
        return self.process * diagonal([low + (high - low) * k / max(1, d - 1) for k in range(d)])


@dataclass(frozen=True)
class Law:
    length: int
    nodes: list[tuple[fmpq, Covariance]]

    def mean(self, of_degree_three: Callable[[Covariance], list[fmpq_poly]]) -> list[fmpq]:
        """Return the means of the polynomials of C that `of_degree_three(C)` lists."""
        parts = [[weight * mean_uniform(p) for p in of_degree_three(C)] for weight, C in self.nodes]
        return [sum(entries, ZERO) for entries in zip(*parts, strict=True)]


def independent_modes(setting: str, d: int, length: int, noise: Noise) -> Law:
    """Return setting (a), A diagonal and c = 1, or (b), A = Q^T diag(v) Q with Q Haar and c uniform."""
    mode = covariance_of_mode(length, noise)
    mean = [[fmpq_poly([mean_uniform(e)]) for e in row] for row in mode]

    def at(x: Any, y: Any = 0) -> Covariance:  # noise I + x E g + y delta
        return _combined(length, noise, (x - y, mean), (y, mode))

    if setting == "a":
        return Law(length, [(fmpq(1 - d), at(d)), (fmpq(d), at(d, 1))])
    r, b2 = squared_norm_moments(d), fmpq(3, d * (d + 2))  # b2 = E b_m^2
    square, mixed, cube = d * r[2] * b2, d * r[3] * b2, d * r[3] * b2 * fmpq(5, d + 4)
    # of q2 only y^2, x y^2 and y^3 are there: their coefficients, from (0, 1), (0, -1) and (1, 1)
    nodes = [(weight, at(x)) for x, weight in enumerate(interpolation(r))]
    nodes += [((square + cube) / 2 - mixed, at(0, 1)), ((square - cube) / 2, at(0, -1)), (mixed, at(1, 1))]
    return Law(length, [*nodes, (mixed - square, at(0)), (-mixed, at(1))])


def listed_modes(setting: str, values: Sequence[Any], length: int, noise: Noise) -> Law:
    """Return settings (a) and (b) with A of these eigenvalues, or of minus these, each as likely."""
    d, polynomials = len(values), covariance_of_mode(length, noise)
    modes = [[[fmpq_poly([e(rational(v))]) for e in row] for row in polynomials] for v in values]
    if setting == "a":
        return Law(length, _mirrored([(fmpq(1), _combined(length, noise, *((1, g) for g in modes)))]))
    # squares b of a direction's coordinates: e_m, (e_m + e_n) / 2 and (1, .., 1) / d have their moments
    shares = [(fmpq(16 - 2 * d), {m: fmpq(1)}) for m in range(d)]
    shares += [(fmpq(16), {m: fmpq(1, 2), n: fmpq(1, 2)}) for m in range(d) for n in range(m)]
    shares += [(fmpq(d) ** 3, dict.fromkeys(range(d), fmpq(1, d)))]
    nodes = []
    for x, of_x in enumerate(interpolation(squared_norm_moments(d))):
        for weight, share in shares:
            C = _combined(length, noise, *((x * b, modes[m]) for m, b in share.items()))
            nodes.append((of_x * weight / (d * (d + 2) * (d + 4)), C))
    return Law(length, _mirrored(nodes))


def drawn_systems(systems: Sequence[System], length: int, noise: Noise, process: fmpq_mat) -> Law:
    """Return one of these (A, c) or (-A, c), each as likely; `process` is the covariance of w."""
    nodes = []
    for A, c in systems:
        C = covariance(A, c, length, noise, process)
        nodes.append((fmpq(1, len(systems)), [[fmpq_poly([e]) for e in row] for row in C]))
    return Law(length, _mirrored(nodes))


def draw(setting: str, d: int, rng: Random, steps: int = STEPS) -> System:
    """Return a system as the paper draws it, its numbers rounded to multiples of 1 / steps; A has the
    drawn eigenvalues exactly."""

    def uniform(width: int) -> fmpq:
        return fmpq(rng.randint(-width * steps, width * steps), steps)

    v = diagonal([fmpq(rng.randint(1 - steps, steps - 1), steps) for _ in range(d)])
    c = column(uniform(HALF_WIDTH) for _ in range(d))
    if setting == "a":
        return v, column([1] * d)
    P = fmpq_mat(d, d)
    while P.det() == 0:
        numbers = [rng.uniform(-1, 1) if setting == "c" else rng.gauss(0, 1) for _ in range(d * d)]
        Q, R = np.linalg.qr(np.array(numbers).reshape(d, d))
        if setting == "c":
            Q = Q @ _well_conditioned(R)
        P = matrix([fmpq(round(steps * float(e)), steps) for e in row] for row in Q)
    return P.inv() * v * P, c


def _well_conditioned(R: Any) -> Any:
    """Return R with the sizes of its diagonal moved to [high / RATIO, high], as appendix B.6 says."""
    size = np.abs(R.diagonal())
    low, high = size.min(), size.max()
    moved = high * (1 / RATIO + (1 - 1 / RATIO) * (size - low) / max(high - low, 1e-300))
    return R + np.diag(np.copysign(moved, R.diagonal()) - R.diagonal())


def covariance_of_mode(length: int, noise: Noise) -> Covariance:
    """Return the covariance of one state without observation noise, polynomials of its eigenvalue."""
    square, variance, variances = fmpq_poly([0, 0, 1]), fmpq_poly([noise.start]), []
    for _ in range(length):
        variance = square * variance + noise.process
        variances.append(variance)
    v = fmpq_poly([0, 1])
    return [[v ** abs(t - u) * variances[min(t, u)] for u in range(length)] for t in range(length)]


def covariance(A: fmpq_mat, c: fmpq_mat, length: int, noise: Noise, process: fmpq_mat) -> list[list[fmpq]]:
    """Return Cov(y) of one system by the recursion of the state's covariance."""
    state, row, ahead, rows = noise.start * identity(A.nrows()), c.transpose(), [], []
    for _ in range(length):
        state = A * state * A.transpose() + process
        ahead.append(state * c)
        rows.append(row)
        row = row * A
    C = [[(rows[abs(t - u)] * ahead[min(t, u)])[0, 0] for u in range(length)] for t in range(length)]
    return [[e + noise.observation * (t == u) for u, e in enumerate(line)] for t, line in enumerate(C)]


def covariance_limit(A: fmpq_mat, process: fmpq_mat) -> fmpq_mat:
    """Return S = A S A^T + process, the state's covariance in the steady state."""
    d = A.nrows()
    places = [(i, j) for i in range(d) for j in range(d)]
    moved = matrix([int(p == q) - A[p[0], q[0]] * A[p[1], q[1]] for q in places] for p in places)
    return fmpq_mat(d, d, moved.solve(column(process.entries())).entries())


def covariance_by_sums(
    A: fmpq_mat, c: fmpq_mat, length: int, noise: Noise, process: fmpq_mat
) -> list[list[fmpq]]:
    """Return Cov(y) by Lemma D.2, eq. (26): E[y_i y_j] = start c.A^i (A^T)^j c + sum_k c.A^(i-k) process
    (A^T)^(j-k) c + noise [i = j], k from 1 to min(i, j)."""
    powers = [c.transpose()]
    for _ in range(length):
        powers.append(powers[-1] * A)
    rows = fmpq_mat(length + 1, A.nrows(), [e for row in powers for e in row.entries()])
    started, driven = noise.start * rows * rows.transpose(), rows * process * rows.transpose()

    def entry(i: int, j: int) -> fmpq:
        steps = sum((driven[i - k, j - k] for k in range(1, min(i, j) + 1)), ZERO)
        return started[i, j] + steps + noise.observation * (i == j)

    return [[entry(i, j) for j in range(1, length + 1)] for i in range(1, length + 1)]


def mean_covariance(setting: str, d: int, length: int, noise: Noise) -> list[list[fmpq]]:
    """Return the mean of (26) over (a) or (b), written down: E v^n = 1 / (n + 1) where n is even."""

    def moment(n: int) -> fmpq:
        return fmpq(1, n + 1) if n % 2 == 0 else ZERO

    def entry(i: int, j: int) -> fmpq:
        steps = sum((moment(i + j - 2 * k) for k in range(1, min(i, j) + 1)), ZERO)
        return size * (noise.start * moment(i + j) + noise.process * steps) + noise.observation * (i == j)

    size = mean_square_of_c(setting, d)
    return [[entry(i, j) for j in range(1, length + 1)] for i in range(1, length + 1)]


def observability(A: fmpq_mat, c: fmpq_mat) -> fmpq_mat:
    """Return O of eq. (5): the rows c.A^k, k = 0 .. d - 1."""
    row, rows = c.transpose(), []
    for _ in range(A.nrows()):
        rows += row.entries()
        row = row * A
    return fmpq_mat(A.nrows(), A.nrows(), rows)


def mean_square_of_c(setting: str, d: int) -> fmpq:
    """Return E |c|^2."""
    return fmpq(d) if setting == "a" else fmpq(d * HALF_WIDTH**2, 3)


def squared_norm_moments(d: int) -> list[fmpq]:
    """Return E |c|^2k, k = 0 .. 3, c uniform on [-5, 5]^d."""
    one = [fmpq(HALF_WIDTH ** (2 * k), 2 * k + 1) for k in range(4)]
    total = [fmpq(1), ZERO, ZERO, ZERO]
    for _ in range(d):
        total = [sum((comb(k, j) * total[j] * one[k - j] for j in range(k + 1)), ZERO) for k in range(4)]
    return total


def interpolation(moments: Sequence[fmpq]) -> list[fmpq]:
    """Return weights of 0, 1, 2, 3 with these moments of order 0 to 3."""
    powers = matrix([x**k for x in range(4)] for k in range(4))
    return list(powers.solve(column(moments)).entries())


def mean_uniform(poly: fmpq_poly) -> fmpq:
    """Return the mean over v uniform on [-1, 1]."""
    return sum((e / (k + 1) for k, e in enumerate(poly.coeffs()) if k % 2 == 0), ZERO)


def _combined(length: int, noise: Noise, *terms: tuple[Any, Covariance]) -> Covariance:
    """Return noise I and the sum of factor times matrix."""
    own, nothing = fmpq_poly([noise.observation]), fmpq_poly([])
    out = [[own if t == u else nothing for u in range(length)] for t in range(length)]
    for factor, C in terms:
        if factor:
            out = [[a + factor * b for a, b in zip(*row, strict=True)] for row in zip(out, C, strict=True)]
    return out


def _mirrored(nodes: list[tuple[fmpq, Covariance]]) -> list[tuple[fmpq, Covariance]]:
    """Return the law of these systems and of those with -A: y_t becomes (-1)^t y_t."""
    signed = [
        (weight, [[e if (t + u) % 2 == 0 else -e for u, e in enumerate(row)] for t, row in enumerate(C)])
        for weight, C in nodes
    ]
    return [(weight / 2, C) for weight, C in nodes + signed]
