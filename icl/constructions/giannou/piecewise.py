"""Functions of one and of two arguments by ReLU neurons: piecewise linear, the error bounded by computation.

J knots u_0 < .. < u_{J-1}; a function of one argument takes J neurons and is constant beyond its knots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.errors import real, whole
from icl.models.giannou.columns import ReLU, Rows

Function = Callable[[np.ndarray], np.ndarray]
INFLECTION = math.log(2 + math.sqrt(3))  # of sigma'(z): where its second derivative changes sign


@dataclass(frozen=True, eq=False)
class Piecewise:
    """f(u) ~ values[0] + sum_j bends[j] relu(u - knots[j]), the interpolant through (knots, values).

    `error` bounds |f - interpolant| between the first knot and the last.
    """

    knots_J: np.ndarray
    values_J: np.ndarray
    error: float

    @property
    def neurons(self) -> int:
        """A constant and a bend at each knot."""
        return len(self.knots_J) + 1

    @property
    def bends_J(self) -> np.ndarray:
        slopes = np.diff(self.values_J) / np.diff(self.knots_J)
        return np.diff(slopes, prepend=0.0, append=0.0)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return the interpolant by its definition, another way than by the neurons."""
        return np.interp(u, self.knots_J, self.values_J)


def interpolant(f: Function, slope: Function, knots_J: np.ndarray) -> Piecewise:
    """Return the error for f convex or concave between neighbouring knots: its inflections must be among
    them.

    There the graph lies between the chord, of slope s, and the two end tangents, of slopes a and b, so the
    gap is at most h (s - a)(b - s) / (b - a); where a is infinite, h |b - s|.
    """
    values_J, slopes_J = f(knots_J), slope(knots_J)
    h, s = np.diff(knots_J), np.diff(values_J) / np.diff(knots_J)
    a, b = slopes_J[:-1], slopes_J[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = h * np.abs((s - a) * (b - s)) / np.abs(b - a)
    gaps = np.where(np.isinf(a), h * np.abs(b - s), np.where(a == b, 0.0, gaps))
    return Piecewise(knots_J, values_J, float(gaps.max()))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -z))


def sigmoid_slope(z: np.ndarray) -> np.ndarray:
    return sigmoid(z) * sigmoid(-z)


def _sigmoid_bend(z: np.ndarray) -> np.ndarray:
    return sigmoid_slope(z) * (sigmoid(-z) - sigmoid(z))


def variance_of_label(neurons: int, radius: float) -> Piecewise:
    """p (1 - p) = sigma'(z) on |z| <= radius."""
    knots_J = _symmetric_knots(whole("construction.width", neurons, 8) - 1, radius, INFLECTION)
    return interpolant(sigmoid_slope, _sigmoid_bend, knots_J)


def probability(neurons: int, radius: float) -> Piecewise:
    """p = sigma(-z) on |z| <= radius."""
    knots_J = _symmetric_knots(whole("construction.width", neurons, 8) - 1, radius, 0.0)
    return interpolant(lambda z: sigmoid(-z), lambda z: -sigmoid_slope(z), knots_J)


def step_size(neurons: int, mu: float, largest: float) -> Piecewise:
    """2 sqrt(mu) / (2 sqrt(mu) + sqrt(u)) on 0 <= u <= largest.

    sqrt is infinitely steep at 0: with equal steps the first of them alone leaves an error of N^{-1/2}. Knots
    at j^4 spread the error of sqrt evenly and give N^{-2}.
    """
    c = 2 * math.sqrt(real("construction.mu", mu, 0, open_low=True))
    J = whole("construction.width", neurons, 8) - 1
    knots_J = largest * (np.arange(J) / (J - 1)) ** 4

    def slope(u: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return -c / (2 * np.sqrt(u) * (c + np.sqrt(u)) ** 2)

    return interpolant(lambda u: c / (c + np.sqrt(u)), slope, knots_J)


def half_square(neurons: int) -> Piecewise:
    """u^2 on |u| <= 2, for products."""
    J = whole("construction.width", neurons, 4) - 1
    return interpolant(lambda u: u**2, lambda u: 2 * u, np.linspace(-2.0, 2.0, J))


def _symmetric_knots(count: int, radius: float, inflection: float) -> np.ndarray:
    """`count` knots on [-radius, radius], evenly spaced on each side of the inflections +-inflection."""
    if inflection == 0.0:
        left = np.linspace(-radius, 0.0, (count + 1) // 2)
        return np.concatenate([left, np.linspace(0.0, radius, count - len(left) + 1)[1:]])
    if inflection >= radius:
        return np.linspace(-radius, radius, count)
    inner = max(2, round((count - 1) * inflection / radius))
    sides = count - 1 - inner
    left = np.linspace(-radius, -inflection, sides // 2 + 1)
    right = np.linspace(inflection, radius, sides - sides // 2 + 1)
    return np.concatenate([left, np.linspace(-inflection, inflection, inner + 1)[1:-1], right])


class Neurons:
    """A ReLU layer put together neuron by neuron: what each reads, and what each writes."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.reads: list[Tensor] = []
        self.writes: list[Tensor] = []

    def add(self, reads: Mapping[str, np.ndarray], writes: Mapping[str, np.ndarray]) -> None:
        """X neurons: relu(sum_row reads[row] * row), times writes[row] to each row; arrays of length X."""
        count = len(next(iter(reads.values())))
        W1_XP, W2_PX = torch.zeros(2, count, self.rows.width, dtype=torch.float64)
        for place, weights in ((W1_XP, reads), (W2_PX, writes)):
            for row, values in weights.items():
                place[:, self.rows[row]] = torch.from_numpy(np.asarray(values, dtype=np.float64))[:, None]
        self.reads.append(W1_XP)
        self.writes.append(W2_PX)

    def clear(self, row: str) -> None:
        """row <- 0, exactly: two neurons, relu(-u) - relu(u)."""
        self.add({row: np.array([1.0, -1.0])}, {row: np.array([-1.0, 1.0])})

    def function(
        self,
        f: Piecewise,
        argument: Mapping[str, float],
        to: str,
        c: float = 1.0,
        gate: tuple[str, float] | None = None,
    ) -> None:
        """to += c f(argument). With a gate (row, sign), only where the row, +-1, has that sign.

        A closed gate moves every neuron's argument by four times the length of the interval of knots.
        """
        ones, knots_J = np.ones(len(f.knots_J)), f.knots_J
        reads = {row: coefficient * ones for row, coefficient in argument.items()}
        constant = {"one": np.ones(1)}
        reads["one"] = reads.get("one", 0.0) - knots_J
        if gate is not None:
            row, sign = gate
            push = 2 * (knots_J[-1] - knots_J[0])
            reads["one"], reads[row] = reads["one"] - push, sign * push * ones
            constant = {"one": np.full(1, 0.5), row: np.full(1, 0.5 * sign)}
        self.add(reads, {to: c * f.bends_J})
        self.add(constant, {to: np.array([c * f.values_J[0]])})

    def product(self, square: Piecewise, u: str, scale: float, v: str, to: str) -> None:
        """to += u v for |scale u| <= 1, |v| <= 1: ((scale u + v)^2 - (scale u - v)^2) / (4 scale)."""
        self.function(square, {u: scale, v: 1.0}, to, 1 / (4 * scale))
        self.function(square, {u: scale, v: -1.0}, to, -1 / (4 * scale))

    def layer(self) -> ReLU:
        return ReLU(torch.cat(self.reads), torch.cat(self.writes).mT.contiguous())
