"""Theorem 5.2 of giannou: one damped Newton step on the regularised logistic loss in 11 + 2k layers.

Rows of (C.2): X, R, I, Z, A, x of d each and y, e, s, one of one: 6 d + 4. Columns of A are the a_i, e is
e_1^T / n, x holds the iterate in every column, s is scratch. X, R and Z serve the inversion: with R = B, the
Hessian, X goes to its inverse. Piecewise linear functions stand where the proof has step functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, e, log
from typing import Any, Self

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.giannou.columns import FIRST, IDENTITY, Head, Layer, balls, forward, padded
from icl.theory.giannou.least_squares import two_layers
from icl.theory.giannou.logistic import Logistic, norm, probability, rounded, variance
from icl.theory.giannou.piecewise import (
    Neurons,
    Piecewise,
    even,
    probability_bend,
    step_size,
    variance_bend,
)
from icl.theory.rationals import identity

State = Mapping[str, Any]
Operation = Callable[[State], State]  # rows before -> the rows that are written
SCORES = Head({"s": FIRST}, key={"x": 1}, query={"A": 1})  # s += x^T A
DIVIDED = (  # s <- s / n in every column
    Head({"s": FIRST}, key={"e": 1}, query={"s": 1}),
    Head({"s": {"I[0]": -1}}, key=FIRST, query={"s": 1}),
)


@dataclass(frozen=True)
class Functions:
    """Functions that ReLU layers stand in for, with their largest errors, and alpha of X_0 = alpha B^T."""

    variance: Piecewise  # p (1 - p)
    square: Piecewise  # behind products d_i a_ij
    probability: Piecewise  # p
    size: Piecewise
    errors: Sequence[Any]  # of p (1 - p), p and the step size
    alpha: fmpq

    @classmethod
    def of(cls, mu: fmpq, width: int) -> Self:
        """Take `width` neurons for each function, for each entry of a_i where it is the product.

        |<x, a_i>| <= |x| <= radius for exact steps from |x_0| <= 1; p and 1 - p are below width^-3 from 3 log
        width on. lambda^2 <= (1 + mu radius)^2 / mu.
        """
        radius = radius_of_iterates(mu)
        end = min(radius, fmpq(ceil(30 * log(width)), 10))
        beyond = abs(probability(-arb(end))) if end < radius else arb(0)
        bend = Piecewise.of(variance, even(end, width - 3))
        p = Piecewise.of(lambda z: probability(-z), even(end, width // 2 - 2))
        size, size_error = step_size(width - 3, mu, (1 + mu * radius) ** 2 / mu)
        errors = [bend.error(variance_bend).max(beyond), p.error(probability_bend).max(beyond), size_error]
        square = even(fmpq(2), width // 2 - 2)
        alpha = 2 / (mu**2 + (mu + fmpq(1, 4)) ** 2)
        return cls(bend, Piecewise(square, [u * u for u in square]), p, size, errors, alpha)


@dataclass(frozen=True)
class StepLayer:
    """Heads, then neurons; what both are said to do; and that the second is done to balls as well."""

    heads: Layer
    operation: Operation
    neurons: Neurons = field(default_factory=Neurons)
    relu: Operation = lambda H: {}


def radius_of_iterates(mu: fmpq, start: int = 1) -> fmpq:
    """Return what bounds |x_t| for exact damped steps from |x_0| <= start: they never raise f, and mu/2 |x|^2
    <= f(x_0) <= log(1 + exp(start)) + mu/2 start^2."""
    return fmpq(ceil((2 * log(1 + e**start) / float(mu) + start**2) ** 0.5))


def inversion_steps(mu: fmpq) -> int:
    """Return the least k whose residual (1 - mu^2 alpha)^{2^k}, alpha as in Functions, is below 2^-52 mu."""
    ratio = ((mu + fmpq(1, 4)) / mu) ** 2
    rest, k = float((ratio - 1) / (ratio + 1)), 1
    while rest ** (2.0**k) > 2**-52 * min(float(mu), 1.0):
        k += 1
    return k


def newton_step(dim: int, context: int, mu: fmpq, inversion: int, by: Functions) -> list[StepLayer]:
    """Return the 11 + 2k layers; the rows end as they began, but for x."""
    n, d, alpha = context, dim, by.alpha
    one = padded(identity(d), n)

    def left(M: fmpq_mat, columns: int = d) -> fmpq_mat:
        return fmpq_mat([row[:columns] for row in M.tolist()])

    def on_s(f: Callable[[Any, Any], Any]) -> Operation:
        def relu(H: State) -> State:
            pairs = zip(H["s"].entries(), H["y"].entries(), strict=True)
            return {"s": type(H["s"])(1, n, [f(s, y) for s, y in pairs])}

        return relu

    def products(H: State) -> State:
        def times(u: Any, v: Any) -> Any:
            return (by.square(4 * n * u + v) - by.square(4 * n * u - v)) / (16 * n)

        X = [times(H["s"][0, i], H["A"][j, i]) for j in range(d) for i in range(n)]
        return {"X": type(H["A"])(d, n, X), "s": 0 * H["s"]}

    def iterate(H: State) -> State:
        return {"X": padded(2 * left(H["X"]) - left(H["X"]) * left(H["Z"]), n), "Z": 0 * H["Z"]}

    def hessian(H: State) -> State:
        B = H["A"] * H["X"].transpose() + mu * identity(d)
        return {"R": padded(B, n), "X": padded(alpha * B, n)}

    def scaled(H: State) -> State:
        rest = H["s"].tolist()[0]
        return {"s": fmpq_mat([(H["s"] * H["X"].transpose()).tolist()[0] + rest[d:]])}

    def moved(H: State) -> State:
        step = left(H["s"]).transpose()
        return {"x": H["x"] - step * fmpq_mat(1, n, [1] * n), "X": one, "R": one}

    curvature = (
        Head({"X": {"A": alpha}, "R": {"A": 1}}, key={"X": 1}, query=IDENTITY),
        Head({"X": {"I": alpha * mu}, "R": {"I": mu - 1}}, key=IDENTITY, query=IDENTITY),
        Head({"X": IDENTITY}, key=IDENTITY, query={"X": -1}),
    )
    transposed = (Head({"X": IDENTITY}, key={"X": 1}, query=IDENTITY), _cleared("X"))
    gradient = (
        Head({"R": {"A": -1}}, key={"s": 1}, query=FIRST),
        _cleared("R"),
        Head({"R": {"x": 1}}, key=FIRST, query={"I[0]": mu}),
    )
    decrement = (
        Head({"s": FIRST}, key={"R": 1}, query={"X": 1}),
        Head({"s": {"I[0]": -1}}, key=FIRST, query={"s": 1}),
    )
    restored = Head({"X": {"I": 1, "X": -1}, "R": {"I": 1, "R": -1}}, key=IDENTITY, query=IDENTITY)
    half, whole = two_layers("R")
    last = two_layers("R", restored=True)[1]

    def scores(H: State) -> State:
        return {"s": left(H["x"], 1).transpose() * H["A"]}

    def divide(H: State) -> State:
        return {"s": H["s"] / n}

    def product(H: State) -> State:
        return {"Z": H["Z"] + padded(left(H["R"]) * left(H["X"]), n)}

    layer = StepLayer
    inverse = [layer(half, product), layer(whole, iterate)] * inversion
    inverse[-1] = layer(last, lambda H: {**iterate(H), "R": one})
    return [
        layer((SCORES,), scores, written(by.variance), on_s(lambda s, y: by.variance(s))),
        layer(DIVIDED, divide, products_of(by, d, n), products),
        layer(curvature, hessian),
        layer(transposed, lambda H: {"X": padded(left(H["X"]).transpose(), n)}),
        *inverse,
        layer(
            (SCORES,),
            scores,
            written(by.probability, gates=(1, -1)),
            on_s(lambda s, y: by.probability(y * s)),
        ),
        layer(DIVIDED, divide, signed(), on_s(lambda s, y: y * s)),
        layer(gradient, lambda H: {"R": padded(mu * left(H["x"], 1) - H["A"] * H["s"].transpose(), n)}),
        layer(
            (Head({"X": {"X": 1}}, key=IDENTITY, query={"R": 1}), _cleared("X")),
            lambda H: {"X": padded(left(H["X"]) * left(H["R"]), n)},
        ),
        layer(
            decrement,
            lambda H: {"s": left(H["R"], 1).transpose() * H["X"]},
            written(by.size),
            on_s(lambda s, y: by.size(s)),
        ),
        layer((Head({"s": {"s": 1}}, key={"X": 1}, query=IDENTITY), _cleared("s")), scaled),
        layer(
            (Head({"x": {"I": -1}}, key={"s": 1}, query={"one": 1}), restored),
            moved,
            written(),
            on_s(lambda s, y: 0 * s),
        ),
    ]


def prompt(loss: Logistic, x: fmpq_mat) -> dict[str, fmpq_mat]:
    """(C.2): [I; I; I; 0; A^T; y^T; x 1^T; e_1^T / n; 0; 1^T]."""
    n, d = loss.A.nrows(), loss.A.ncols()
    one, ones = padded(identity(d), n), fmpq_mat(1, n, [1] * n)
    return {
        "X": one, "R": one, "I": one, "Z": fmpq_mat(d, n), "A": loss.A.transpose(),
        "y": fmpq_mat(1, n, list(loss.y)), "x": x * ones, "e": padded(fmpq_mat(1, 1, [fmpq(1, n)]), n),
        "s": fmpq_mat(1, n), "one": ones,
    }  # fmt: skip


def follow(
    layers: Sequence[StepLayer], loss: Logistic, x: fmpq_mat, steps: int
) -> tuple[list[arb], fmpq_mat]:
    """Return how far each of the constructed steps ends from the exact one, and the last iterate. Each begins
    at a rational near the end of the one before."""
    errors = []
    for _ in range(steps):
        H: State = balls(prompt(loss, x))
        for layer in layers:
            H = forward(layer.heads, H)
            H = {**H, **layer.relu(H)}
        at, end = loss.at(x), arb_mat([row[:1] for row in H["x"].tolist()])
        x = rounded(end, 100)
        errors.append(norm(end - at.x - at.move))
        if not errors[-1].rel_accuracy_bits() > 20:
            raise Blurred
    return errors, x


def lacking(layers: Sequence[StepLayer], number: int, head: int) -> list[StepLayer]:
    """Return the layers, one without this head."""
    found = list(layers)
    heads = found[number].heads
    found[number] = replace(found[number], heads=heads[:head] + heads[head + 1 :])
    return found


def written(f: Piecewise | None = None, gates: Sequence[int | None] = (None,)) -> Neurons:
    """s <- f(s), or f(y s) by two gates; without f 0."""
    neurons = Neurons()
    for sign in gates:
        if f is not None:
            neurons.function(f, {"s": sign or 1}, "s", gate=("y", sign) if sign else None)
    neurons.clear("s")
    return neurons


def products_of(by: Functions, dim: int, context: int) -> Neurons:
    neurons = Neurons()
    for j in range(dim):
        neurons.product(by.square, "s", 4 * context, f"A[{j}]", f"X[{j}]")
        neurons.clear(f"X[{j}]")
    neurons.clear("s")
    return neurons


def signed() -> Neurons:
    """y s for y = +-1 and |s| < 4: (s/2 + 2 y)+ - (-s/2 + 2 y)+ and (-s/2 - 2 y)+ - (s/2 - 2 y)+."""
    neurons = Neurons()
    for half, two, to in ((1, 2, 1), (-1, 2, -1), (-1, -2, 1), (1, -2, -1)):
        neurons.all.append(({"s": fmpq(half, 2), "y": two}, {"s": to}))
    neurons.clear("s")
    return neurons


def _cleared(block: str) -> Head:
    """Set the block's first d columns to 0."""
    return Head({block: {block: -1}}, key=IDENTITY, query=IDENTITY)
