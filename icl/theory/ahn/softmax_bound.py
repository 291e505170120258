"""A lower bound for the risk of one head of softmax attention: x, w ~ N(0, I), d >= 3, n context tokens.

The head predicts v^T sum_i alpha_i x_i with v = b_x + b_y w and weights alpha_i ~ exp(u^T x_i),
u = r_x + r_y w; the query, which is masked, may take any share of them. The bound lets b and r depend on the
query, whose length factors out, so that the target is w_1. Given w, t_i = x_i^T u / |u| ~ N(0, 1) are
independent of u / |u| and of the rest of x_i. With s = |u|, g = sum alpha_i t_i, p = v^T u / s and
k^2 = |v|^2 - p^2

    E[(w_1 - prediction)^2 | w] = w_1^2 - 2 w_1 p E g + p^2 E g^2 + k^2 E sum alpha_i^2    at this s.

1. E g is not negative and increases with s: dg / ds is a variance under the weights.
2. By Cauchy and Schwarz, whatever sum the weights are divided by,
   P E g^2 + K E sum alpha_i^2 >= (E g)^2 P / share(K / P), share(l) = sup_s E[T / (l + T)],
   T = max(sum e^(s t_i) t_i, 0)^2 / sum e^(2 s t_i).
3. A reflection of w and of all x_i splits the risk into that of r_x parallel to e_1 and that of r_x
   orthogonal to it. The latter is at least 1 - share(d - 1), and so is the risk for r_y = 0.
4. Parallel, scaled to u = w + a e_1: let A = E w_1 p, P = E p^2 and K = E k^2, given s. The risk is at least
   1 - gain, gain(a, b) the most that E[2 A G - G^2 P / share(K / P)] can be for a function G >= 0 of s that
   increases, as E g does: an isotonic regression.

share is bounded from samples, for all l together; gain by branch and bound over a and the direction
(b_1, b_y), with enclosures of A, P and K on cells between quantiles of s. For linear attention,
alpha_i ~ t_i, the same holds with T = sum t_i^2.

A box, five numbers, is an interval of z, a = sqrt(d) z / (1 - z), a side of the square max(|b_1|, |b_y|) = 1,
in the order (1, y), (-1, y), (y, 1), (y, -1), and an interval of y.

M samples, N tokens, J values of l, B boxes, C cells or their ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import isotonic_regression

from icl.theory.closed_forms import isotropic_risk

Array = NDArray[np.float64]

LEAST_DIM = 3  # below it the mean of tau (1 - cosine) need not increase with tau, see `_cell_ends`
# Values of s, between and beyond which T is bounded, and of l.
SCALES = np.concatenate([np.geomspace(0.02, 0.3, 15)[:-1], np.geomspace(0.3, 8, 250), [10, 13, 17, 25]])
RATIOS = np.concatenate([[0.0], np.geomspace(0.01, 1000, 35)])
LEVEL = 5.0  # the cells are between the quantiles of s of the levels of -LEVEL .. LEVEL under N(0, 1)
TAILS = 2 * (3 * float(special.ndtr(-LEVEL))) ** 0.5  # the most that E w_1^2 is beyond them, E w_1^4 = 3
CELLS = 7  # times the root of the number of boxes
FIRST, CUT = 8, 64  # intervals of each side of the first boxes; boxes that are cut at a time
INFINITE = 1e90  # instead of infinity, so that 0 times it is 0
LARGEST, SMALLEST = 1e9, 1e-9  # of A and of P / share: beyond them a box is cut


class Share(NamedTuple):
    """Upper bounds of share at RATIOS, and of l share(l) for all l."""

    at_ratios_J: Array
    slope: float

    def above(self, ratio: Array) -> Array:
        """Bound share(ratio): it is convex, so that chords are above it."""
        with np.errstate(divide="ignore"):
            return np.minimum(np.interp(ratio, RATIOS, self.at_ratios_J), self.slope / ratio)


def softmax_share(t_MN: Array, confidence: float) -> Share:
    """Bound share from samples of t, with this confidence for all l together."""
    return _share(_softmax_parts(t_MN), len(SCALES) + 1, confidence)


def linear_share(t_MN: Array, confidence: float) -> Share:
    """Bound the same for linear attention."""
    return _share(iter([np.square(t_MN).sum(1)]), 1, confidence)


def excess_bounds(t_MN: Array, dim: int, confidence: float, boxes: int) -> tuple[float, float, float]:
    """Return a lower bound of every softmax head's excess over the linear optimum, relative, the most that
    more boxes can make of it, and the latter for linear attention."""
    share, linear = softmax_share(t_MN, confidence), linear_share(t_MN, confidence)
    gain = min(1.0, most_gain(dim, share, boxes)) if dim >= LEAST_DIM else 1.0  # no bound
    gains = gain, *(float(its.above(np.array(dim - 1.0))) for its in (share, linear))
    low, limit, of_linear = (dim * (1 - g) / isotropic_risk(dim, t_MN.shape[1]) - 1 for g in gains)
    return low, limit, of_linear


def _softmax_parts(t_MN: Array) -> Iterator[Array]:
    """Yield the most that T can be on each interval of s.

    For p_i = e^(s t_i) / sum e^(s t_j), T = max(sum p_i t_i, 0)^2 / sum p_i^2, and both sums increase with s.
    """
    most_M1 = t_MN.max(1, keepdims=True)
    shifted_MN, squares_M = t_MN - most_M1, np.full(len(t_MN), 1 / t_MN.shape[1])  # p_i = 1/N at s = 0
    for s in SCALES:
        p_MN = np.exp(s * shifted_MN)
        total_M = p_MN.sum(1)
        mean_M = np.einsum("mn,mn->m", p_MN, t_MN) / total_M
        yield np.square(np.maximum(mean_M, 0)) / squares_M
        squares_M = np.einsum("mn,mn->m", p_MN, p_MN) / total_M**2
    yield np.square(np.maximum(most_M1[:, 0], 0)) / squares_M


def _share(parts: Iterator[Array], count: int, confidence: float) -> Share:
    quantile = -float(special.ndtri((1 - confidence) / (count * (len(RATIOS) + 1))))
    highest_J, slope = np.zeros(len(RATIOS)), 0.0
    for T_M in parts:
        T_M1 = np.maximum(T_M, np.finfo(float).tiny)[:, None]
        highest_J = np.maximum(highest_J, _above(T_M1 / (T_M1 + RATIOS), quantile))
        slope = max(slope, float(_above(T_M, quantile)))
    return Share(np.minimum(highest_J, 1.0), slope)


def _above(values_M: Array, quantile: float) -> Array:
    mean, square = values_M.mean(0), np.einsum("m...,m...->...", values_M, values_M) / len(values_M)
    return np.asarray(mean + quantile * (np.maximum(square - mean**2, 0) / len(values_M)) ** 0.5)


def most_gain(dim: int, share: Share, most: int) -> float:
    """Bound the gain of every head, as a share of E w_1^2, with at most `most` boxes; more of them, with
    finer cells, bound it more closely."""
    if dim < LEAST_DIM:
        raise ValueError(f"dim={dim}: must be at least {LEAST_DIM}")
    least, cells = float(share.above(np.array(dim - 1.0))), round(CELLS * most**0.5)
    at = [k / FIRST for k in range(FIRST + 1)]
    z_and_y = [(z, side, y) for z in pairwise(at) for side in range(4) for y in pairwise(at)]
    box_B5 = np.array([[*z, side, *(2 * end - 1 for end in y)] for z, side, y in z_and_y])
    gain_B, count = _gain(dim, share, box_B5, cells), len(box_B5)
    while count + 4 * CUT <= most and gain_B.max() > least:
        order_B = np.argsort(gain_B)
        kept_B, cut_B5 = order_B[:-CUT], _quarters(box_B5[order_B[-CUT:]])
        box_B5 = np.concatenate([box_B5[kept_B], cut_B5])
        gain_B = np.concatenate([gain_B[kept_B], _gain(dim, share, cut_B5, cells)])
        count += len(cut_B5)
    return max(least, float(gain_B.max()))


def _quarters(box_B5: Array) -> Array:
    """Cut both intervals in two. The ends are binary fractions: nothing is lost between."""
    for low, high in ((3, 4), (0, 1)):
        first_B5, second_B5 = box_B5.copy(), box_B5.copy()
        first_B5[:, high] = second_B5[:, low] = (box_B5[:, low] + box_B5[:, high]) / 2
        box_B5 = np.concatenate([first_B5, second_B5])
    return box_B5


class _Interval(NamedTuple):
    """Ends of intervals, entry by entry; NaN is no bound."""

    low: Array
    high: Array

    def plus(self, other: _Interval) -> _Interval:
        return _Interval(self.low + other.low, self.high + other.high)

    def minus(self, other: _Interval) -> _Interval:
        return _Interval(self.low - other.high, self.high - other.low)

    def times(self, other: _Interval) -> _Interval:
        corners = [x * y for x in self for y in other]
        return _Interval(reduce(np.fmin, corners), reduce(np.fmax, corners))

    def inverse(self) -> _Interval:
        """1 / x, of positive intervals."""
        return _Interval(1 / self.high, 1 / self.low)

    def within(self, other: _Interval) -> _Interval:
        return _Interval(np.fmax(self.low, other.low), np.fmin(self.high, other.high))

    def least_square(self) -> Array:
        return np.square(np.maximum(np.maximum(self.low, -self.high), 0))


def _gain(dim: int, share: Share, box_B5: Array, cells: int) -> Array:
    """Bound the gain on each box: A from above, P and K from below; infinite where that is no bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most_A_BC, least_P_BC, least_K_BC = _enclosed(dim, box_B5, cells)
        Q_BC = np.where(
            least_P_BC > 0, least_P_BC / share.above(least_K_BC / least_P_BC), least_K_BC / share.slope
        )
    mass_C = np.diff(special.ndtr(_levels(cells)))
    known_B = ((Q_BC > SMALLEST) & (most_A_BC < LARGEST)).all(1)
    gain_B = np.full(len(Q_BC), np.inf)
    for i in np.flatnonzero(known_B):
        A_C, Q_C = most_A_BC[i], Q_BC[i]
        G_C = np.maximum(isotonic_regression(A_C / Q_C, weights=mass_C * Q_C).x, 0)
        gain_B[i] = mass_C @ (2 * A_C * G_C - Q_C * G_C**2) + TAILS
    return gain_B


def _enclosed(dim: int, box_B5: Array, cells: int) -> tuple[Array, Array, Array]:
    """Return bounds of A from above, of P and of K from below, on each cell of each box."""
    near, far = (
        _CellEnds(*map(np.stack, zip(*[_cell_ends(dim, z, cells) for z in z_B], strict=True)))
        for z_B in box_B5.T[:2]
    )
    # With a and s all increase but s - a, the variance and `across`, which decrease.
    a = _Interval(near.a[:, None], far.a[:, None])
    s = _Interval(near.s[:, :-1], far.s[:, 1:])
    e = _Interval(far.e[:, :-1], near.e[:, 1:])
    cosine = _Interval(near.cosine[:, :-1], far.cosine[:, 1:])
    sine = _Interval(1 - cosine.high, 1 - cosine.low)  # versed
    variance = _Interval(far.variance[:, 1:], near.variance[:, :-1])
    lag = _Interval(near.lag[:, :-1], far.lag[:, 1:])
    side_B1, y_2B1 = box_B5[:, 2:3], box_B5.T[3:, :, None]
    end_B1, first_B1 = 1 - 2 * (side_B1 % 2), side_B1 < 2
    b_1 = _Interval(*(np.where(first_B1, end_B1, y_B1) for y_B1 in y_2B1))
    b_y = _Interval(*(np.where(first_B1, y_B1, end_B1) for y_B1 in y_2B1))
    # With c = b_1 - a b_y: E w_1 = e - s (1 - cosine), E p = b_1 cosine + b_y (e + a (1 - cosine)),
    # Cov(w_1, p) = c s Var, Var p = c^2 Var and K = c^2 (1 - E (u_1 / s)^2) = c^2 (d - 1) cosine / (a s)
    w = e.minus(s.times(sine).within(lag.times(a.inverse())))
    p = b_1.times(cosine).plus(b_y.times(e.plus(a.times(sine).within(lag.times(s.inverse())))))
    c, c_over_a = b_1.minus(b_y.times(a)), b_1.times(a.inverse()).minus(b_y)
    far_variance = np.fmin(a.high * s.high * variance.high, (dim**2 - 1) / (4 * a.low * s.low))  # a s Var
    covariance = np.fmin(
        c.times(s.times(variance)).high, c_over_a.times(_Interval(np.zeros_like(s.low), far_variance)).high
    )
    a_over_s = np.fmax(a.low / s.high, 1 / (1 + np.fmax(e.high / a.low, e.high / a.high)))  # the least
    least_P = p.least_square() + c.least_square() * variance.low
    least_K = np.fmax(
        c.least_square() * far.across[:, 1:], c_over_a.least_square() * a_over_s * (dim - 1) * cosine.low
    )
    return w.times(p).high + covariance, least_P, least_K


class _CellEnds(NamedTuple):
    """Quantiles of s = |w + a e_1| and, given s, the law of the cosine u_1 / s."""

    a: Array
    s: Array
    e: Array  # s - a
    cosine: Array  # its mean
    variance: Array  # its variance
    across: Array  # 1 - E (u_1 / s)^2
    lag: Array  # a s (1 - cosine)


def _levels(cells: int) -> Array:
    return np.linspace(-LEVEL, LEVEL, cells + 1)


@lru_cache(maxsize=4096)
def _cell_ends(dim: int, z: float, cells: int) -> _CellEnds:
    """Return what is known at the ends of the cells.

    The cosine y has the density e^(tau y) (1 - y^2)^((d - 3) / 2), tau = a s. For d >= 3 its mean is
    increasing and concave in tau (the inequality of Griffiths, Hurst and Sherman; Ellis, Monroe and Newman
    1976), the derivative is the variance, and tau (1 - y) increases in law, to a gamma variable of shape
    (d - 1) / 2. s increases in law with a, and s - a decreases."""
    levels = _levels(cells)
    if z == 1:
        infinite, zero = np.full(cells + 1, INFINITE), np.zeros(cells + 1)
        return _CellEnds(np.array(INFINITE), infinite, levels, zero + 1, zero, zero, zero + (dim - 1) / 2)
    a = dim**0.5 * z / (1 - z)
    s = np.sqrt(special.chndtrix(special.ndtr(levels), dim, a**2))
    tau = np.maximum(a * s, 1e-9)
    cosine = special.ive(dim / 2, tau) / special.ive(dim / 2 - 1, tau)
    across = (dim - 1) * cosine / tau
    variance = np.maximum(1 - across - cosine**2, 0)
    return _CellEnds(np.array(a), s, s - a, cosine, variance, across, a * s * (1 - cosine))
