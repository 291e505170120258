"""The exact risk of one layer of linear attention on AR(s) tokens (y_t, .., y_{t+s}), t = 1 .. N = T - s - 1.

Half the squared error of sum_k q_k <G, X_k>, with q = (y_{T-s}, .., y_{T-1}), target y_T and X_k = sym(b
a_k^T): b is the last column of W_V, a_k row k of W_QK. Coordinates x of X_k are those of G's entries a <= b.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from typing import Any

from flint import fmpq, fmpq_mat, fmpq_poly

from icl.theory.lds.systems import Covariance, Law
from icl.theory.rationals import column, dot

Pair = tuple[int, int]
NOTHING = fmpq_poly([])


class Layer:
    """form = E[q_k q_l G G], linear = E[y_T q_k G] and constant = E[y_T^2]: the risk of x (K S
    coordinates)."""

    def __init__(self, law: Law, window: int) -> None:
        self.window, self.pairs = window, pairs_of(window)
        moments = law.mean(lambda C: conditional_moments(C, window))
        size = window * len(self.pairs)
        low = iter(moments)
        self.form = fmpq_mat(size, size)
        for i in range(size):
            for j in range(i + 1):
                self.form[i, j] = self.form[j, i] = next(low)
        self.linear = column(next(low) for _ in range(size))
        self.constant = next(low)

    def gradient(self, x: fmpq_mat) -> fmpq_mat:
        return self.form * x - self.linear

    def half_risk(self, x: fmpq_mat) -> fmpq:
        return (self.constant + dot(x, self.form * x - 2 * self.linear)) / 2

    def least(self) -> fmpq:
        """Return the least risk over all x: a bound for any number of heads."""
        return (self.constant - dot(self.linear, self.form.solve(self.linear))) / 2

    def coefficients(self, b: Sequence[fmpq], keys: Sequence[Sequence[fmpq]]) -> fmpq_mat:
        """Return x of the head with W_V's last column b and rows a_k of W_QK."""
        return column(b[i] * a[j] + (b[j] * a[i] if i != j else 0) for a in keys for i, j in self.pairs)


def pairs_of(window: int) -> list[Pair]:
    return list(combinations_with_replacement(range(window + 1), 2))


def in_pattern(window: int) -> tuple[list[bool], list[list[bool]]]:
    """Return which entries of b and of the rows a_k pattern (13) leaves free."""
    b = [(i + window + 1) % 2 == 0 for i in range(1, window + 2)]
    return b, [[(k + i) % 2 == 0 for i in range(1, window + 2)] for k in range(1, window + 1)]


def forced_zeros(window: int) -> list[int]:
    """Return the coordinates of the checkerboard (12): where both sides of (11) are odd moments."""
    places = [(j, m, n) for j in range(1, window + 1) for m, n in pairs_of(window)]
    return [at for at, (j, m, n) in enumerate(places) if (j + m + n + window + 1) % 2]


def gram(y: Sequence[fmpq], window: int) -> fmpq_mat:
    """Return G of one sequence."""
    N = len(y) - window - 1
    tokens = fmpq_mat(N, window + 1, [y[t + a] for t in range(N) for a in range(window + 1)])
    return tokens.transpose() * tokens / fmpq(N)


def weights(b: Sequence[fmpq], keys: Sequence[Sequence[fmpq]]) -> tuple[fmpq_mat, fmpq_mat]:
    """Return W_V and W_QK of a head, 0 where they have no effect."""
    P = len(b)
    W_V, W_QK = fmpq_mat(P, P), fmpq_mat(P, P)
    for i, row in enumerate([*keys, [fmpq(0)] * P]):
        W_V[i, P - 1] = b[i]
        for j, entry in enumerate(row):
            W_QK[i, j] = entry
    return W_V, W_QK


def answer(y: Sequence[fmpq], W_V: fmpq_mat, W_QK: fmpq_mat) -> fmpq:
    """Return the last entry of q + W_V^T G W_QK^T q, the query's, for the tokens of one sequence."""
    window = W_V.nrows() - 1
    query = column([*y[-window - 1 : -1], 0])
    return (W_V.transpose() * gram(y, window) * W_QK.transpose() * query)[window, 0]


def conditional_moments(C: Covariance, window: int) -> list[fmpq_poly]:
    """Return the lower half of E[q_k G q_l G], then E[y_T q_k G] and E[y_T^2], for Gaussian y with
    covariance C, by all 15 and all 3 pairings. With m = E G, J = Cov(G, G), L_k the vector with q_k paired
    into G, W_l = Cov(q_l, y):

        E[q_k q_l G_1 G_2] = C_kl (m_1 m_2 + J_12) + V_kl,1 m_2 + V_kl,2 m_1 + L_k1.C L_l2 + L_l1.C L_k2,
        V_kl,1 = L_k1.W_l."""
    T, pairs = len(C), pairs_of(window)
    N, S, query, last = T - window - 1, len(pairs), range(T - window - 1, T - 1), T - 1
    m, J = gram_moments(C, window)
    L = [[_paired_once(C[row], a, b, N) for a, b in pairs] for row in (*query, last)]
    V = [[[_dot(L[k][s], C[q]) for s in range(S)] for q in query] for k in range(window)]
    turned = [[[_dot(row, one) for row in C] for one in L[k]] for k in range(window)]
    crossed: dict[tuple[int, ...], fmpq_poly] = {}

    def cross(k: int, s: int, n: int, r: int) -> fmpq_poly:
        key = min((k, s, n, r), (n, r, k, s))
        if key not in crossed:
            crossed[key] = _dot(L[key[0]][key[1]], turned[key[2]][key[3]])
        return crossed[key]

    out = []
    for k, s in product(range(window), range(S)):
        for n, r in ((j, r) for j in range(k + 1) for r in range(S if j < k else s + 1)):
            own = C[query[k]][query[n]] * (m[s] * m[r] + J[max(s, r)][min(s, r)])
            out.append(own + V[k][n][s] * m[r] + V[k][n][r] * m[s] + cross(k, s, n, r) + cross(n, s, k, r))
    out += [C[last][q] * m[s] + _dot(L[window][s], C[q]) for q in query for s in range(S)]
    return [*out, C[last][last]]


def gram_moments(C: Covariance, window: int) -> tuple[list[fmpq_poly], list[list[fmpq_poly]]]:
    """Return E[G_ab] and the lower half of Cov(G_ab, G_ce) given C."""
    N, pairs = len(C) - window - 1, pairs_of(window)
    mean = [sum((C[t + a][t + b] for t in range(N)), NOTHING) / N for a, b in pairs]
    blocks = {
        (a, c): [C[t + a][u + c] for t in range(N) for u in range(N)]
        for a in range(window + 1)
        for c in range(window + 1)
    }
    products: dict[tuple[Pair, ...], fmpq_poly] = {}

    def multiplied(one: Pair, other: Pair) -> fmpq_poly:
        turned = tuple(sorted((one[::-1], other[::-1])))
        key = min(tuple(sorted((one, other))), turned)
        if key not in products:
            products[key] = _dot(blocks[key[0]], blocks[key[1]])
        return products[key]

    covariance = [
        [(multiplied((a, c), (b, e)) + multiplied((a, e), (b, c))) / N**2 for c, e in pairs[: i + 1]]
        for i, (a, b) in enumerate(pairs)
    ]
    return mean, covariance


def hessian_traces(C: Covariance, window: int) -> list[fmpq_poly]:
    """Return E tr H and E tr H^2 given C, H the Gram matrix without its last row and column."""
    mean, covariance = gram_moments(C, window)
    inside = [(at, a == b) for at, (a, b) in enumerate(pairs_of(window)) if b < window]
    squares = [(2 - once) * (mean[at] ** 2 + covariance[at][at]) for at, once in inside]
    return [sum((mean[at] for at, once in inside if once), NOTHING), sum(squares, NOTHING)]


def moment(C: Covariance, times: Sequence[int]) -> fmpq_poly:
    """Return E of the product of y at these times, from 0, by all its pairings."""
    if not times:
        return fmpq_poly([1])
    first, *rest = times
    return sum((C[first][one] * moment(C, rest[:i] + rest[i + 1 :]) for i, one in enumerate(rest)), NOTHING)


def _paired_once(row: Sequence[fmpq_poly], a: int, b: int, N: int) -> list[fmpq_poly]:
    """Return L with E[z y_t G_ab] beside E[z y_t] E[G_ab] being L.C_t, where `row` is Cov(z, y)."""
    out = [NOTHING] * len(row)
    for t in range(N):
        out[t + b] = out[t + b] + row[t + a] / N
        out[t + a] = out[t + a] + row[t + b] / N
    return out


def _dot(one: Sequence[fmpq_poly], other: Sequence[fmpq_poly]) -> fmpq_poly:
    return sum((a * b for a, b in zip(one, other, strict=True)), NOTHING)


def toeplitz_distance(law: Law, s: int) -> fmpq:
    """Return E |G - Toep G|_F^2 / E |G|_F^2, Toep the mean along each diagonal."""
    pairs = pairs_of(s)

    def moments(C: Covariance) -> list[Any]:
        mean, covariance_of = gram_moments(C, s)
        return [mean[i] * mean[j] + covariance_of[i][j] for i in range(len(pairs)) for j in range(i + 1)]

    found = iter(law.mean(moments))
    second = {(i, j): next(found) for i in range(len(pairs)) for j in range(i + 1)}
    total = kept = fmpq(0)
    for i, (a, b) in enumerate(pairs):
        total += second[i, i] * (1 if a == b else 2)
    for lag in range(s + 1):
        places = [i for i, (a, b) in enumerate(pairs) if b - a == lag]
        along = sum((second[max(i, j), min(i, j)] for i in places for j in places), fmpq(0))
        kept += along / len(places) * (1 if lag == 0 else 2)
    return (total - kept) / total
