"""Functions by ReLU neurons: piecewise linear through rational knots, with bounds on their errors, and layers
of such neurons.

J knots take J neurons and one more for a constant. Beyond its knots a function is constant.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from flint import arb, fmpq, fmpq_mat

from icl.theory.giannou.balls import greatest
from icl.theory.giannou.logistic import probability, variance

ZERO = fmpq(0)


@dataclass(frozen=True)
class Piecewise:
    """The interpolant through knots and values."""

    knots: Sequence[fmpq]
    values: Sequence[fmpq]

    @classmethod
    def of(cls, f: Callable[[arb], arb], knots: Sequence[fmpq]) -> Self:
        """Round f at the knots."""
        return cls(knots, [f(arb(u)).mid().fmpq() for u in knots])

    @cached_property
    def slopes(self) -> list[fmpq]:
        pairs = pairwise(zip(self.knots, self.values, strict=True))
        return [(w - v) / (b - a) for (a, v), (b, w) in pairs]

    @cached_property
    def steepest(self) -> fmpq:
        return max(map(abs, self.slopes))

    def __call__(self, u: Any) -> Any:
        """Return the value at a rational, or a ball around that at a ball's middle."""
        if isinstance(u, fmpq):
            k = bisect_right(self.knots, u) - 1
            if not 0 <= k < len(self.slopes):
                return self.values[max(k, 0)]
            return self.values[k] + self.slopes[k] * (u - self.knots[k])
        return self(u.mid().fmpq()) + self.steepest * arb(0, u.rad())

    def error(self, bend: Callable[[arb], arb]) -> arb:
        """Bound the error between the first knot and the last, by h^2 / 8 times the second derivative."""
        steps = pairwise(self.knots)
        return greatest((b - a) ** 2 / 8 * bend(arb(a).union(arb(b))).abs_upper() for a, b in steps)


def even(radius: fmpq, count: int) -> list[fmpq]:
    return [radius * (2 * fmpq(k, count - 1) - 1) for k in range(count)]


def variance_bend(z: arb) -> arb:
    """Return the second derivative of p (1 - p)."""
    v = variance(z)
    return v * (1 - 6 * v)


def probability_bend(z: arb) -> arb:
    return variance(z) * (1 - 2 * probability(z))


def step_size(count: int, mu: fmpq, largest: fmpq) -> tuple[Piecewise, fmpq]:
    """Return 2 sqrt(mu) / (2 sqrt(mu) + sqrt(u)) up to `largest` or more, and its largest error.

    At knots u = 4 mu (1/f - 1)^2 its values f are rational. They are densest at both ends: sqrt is
    infinitely steep at 0. The function is convex, so that its graph lies between chord and tangents.
    """
    end = 1 / (1 + fmpq((largest / (4 * mu)).ceil()))  # f at 4 mu (1/f - 1)^2 >= largest, as 1/f - 1 >= 1
    shares = [fmpq(k, count - 1) for k in range(count)]
    values = [1 - (1 - end) * t * t * (3 - 2 * t) for t in shares]
    found = Piecewise([4 * mu * (1 / f - 1) ** 2 for f in values], values)
    tangents = [-f * f / (8 * mu * (1 / f - 1)) for f in values[1:]]
    gaps = [(found.knots[1] - found.knots[0]) * abs(tangents[0] - found.slopes[0])]
    for (a, b), s, (u, w) in zip(
        pairwise(tangents), found.slopes[1:], pairwise(found.knots[1:]), strict=True
    ):
        gaps.append((w - u) * (s - a) * (b - s) / (b - a))
    return found, max(gaps)


Row = Mapping[str, fmpq | int]  # row of H, by its block and number, -> coefficient


class Neurons:
    """A ReLU layer H <- H + W2 relu(W1 H), neuron by neuron: what each reads, and what each writes."""

    def __init__(self) -> None:
        self.all: list[tuple[Row, Row]] = []

    def __len__(self) -> int:
        return len(self.all)

    def clear(self, row: str) -> None:
        """row <- 0: relu(-u) - relu(u)."""
        self.all += [({row: 1}, {row: -1}), ({row: -1}, {row: 1})]

    def function(
        self, f: Piecewise, argument: Row, to: str, c: fmpq | int = 1, gate: tuple[str, int] | None = None
    ) -> None:
        """to += c f(argument). With a gate (row, sign), only where the row, +-1, has that sign: a closed gate
        moves every neuron's argument by four times the length of the interval of knots."""
        push = 2 * (f.knots[-1] - f.knots[0])
        for knot, bend in zip(f.knots, bends(f), strict=True):
            reads = {**argument, "one": argument.get("one", 0) - knot}
            if gate is not None:
                reads["one"] -= push
                reads[gate[0]] = gate[1] * push
            self.all.append((reads, {to: c * bend}))
        constant: Row = {"one": 1} if gate is None else {"one": fmpq(1, 2), gate[0]: fmpq(gate[1], 2)}
        self.all.append((constant, {to: c * f.values[0]}))

    def product(self, square: Piecewise, u: str, scale: int, v: str, to: str) -> None:
        """to += u v for |scale u| <= 1, |v| <= 1: ((scale u + v)^2 - (scale u - v)^2) / (4 scale)."""
        self.function(square, {u: scale, v: 1}, to, fmpq(1, 4 * scale))
        self.function(square, {u: scale, v: -1}, to, -fmpq(1, 4 * scale))

    def apply(self, H: Mapping[str, fmpq_mat]) -> dict[str, fmpq_mat]:
        """Return H after the layer."""
        new = {name: fmpq_mat(block) for name, block in H.items()}
        for m in range(next(iter(H.values())).ncols()):
            for reads, writes in self.all:
                total = sum((c * entry(H, row, m) for row, c in reads.items()), ZERO)
                if total > 0:
                    for row, c in writes.items():
                        block, _, index = row.partition("[")
                        new[block][int(index[:-1] or 0) if index else 0, m] += c * total
        return new


def bends(f: Piecewise) -> list[fmpq]:
    return [b - a for a, b in pairwise([ZERO, *f.slopes, ZERO])]


def entry(H: Mapping[str, fmpq_mat], row: str, column: int) -> fmpq:
    block, _, index = row.partition("[")
    return H[block][int(index[:-1]) if index else 0, column]
