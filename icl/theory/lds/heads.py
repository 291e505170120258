"""Single heads on AR(s) tokens: searches for the best, and proofs that none is below a level.

At given b the risk is quadratic in the keys a: over all a it is above a level where the determinant of

    [[F, -l], [-l^T, c]],   F = D^T form D, l = D^T linear, c = constant - 2 level,  x = D(b) a,

is positive, as F is. It is a form in b of degree 2 (number of keys), and b's scale goes into a: the form is
positive if it is on the faces b_f = 1 of a cube. There it is written in Bernstein's basis, whose functions
are not negative on a box: positive coefficients are a proof, and boxes are halved until there is one.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import comb
from random import Random
from typing import NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.optimize import minimize

from icl.theory.lds.layer import Layer
from icl.theory.rationals import column, matrix

DIGITS, KEPT = 10**12, 2**256  # of found weights; sizes that coefficients are rounded down at
BOXES = 20_000  # a proof takes some hundred
Table = list[list[int]]


class Head(NamedTuple):
    """W_V's last column b and rows a_k of W_QK, of several heads one after the other; the risk is exact."""

    risk: fmpq
    b: list[list[fmpq]]
    keys: list[list[list[fmpq]]]


class Heads:
    def __init__(self, layer: Layer) -> None:
        self.layer, self.width = layer, layer.window + 1
        entries = range(self.width)
        units = [[fmpq(int(i == j)) for j in entries] for i in entries]
        nothing = [fmpq(0)] * self.width
        self.designs = []  # D of the unit vectors
        for b in units:
            columns = [
                layer.coefficients(b, [a if i == k else nothing for i in range(layer.window)]).entries()
                for k in range(layer.window)
                for a in units
            ]
            self.designs.append(matrix(columns).transpose())
        self._floats = [floats(x) for x in (layer.form, layer.linear, *self.designs)]

    def search(self, free: Sequence[bool], rng: Random, count: int = 1, starts: int = 6) -> Head:
        """Return the best of `count` heads, b nonzero at `free`: descents over b, the keys solved for."""
        form, linear, *designs = self._floats
        places = np.flatnonzero(free)
        chosen = np.stack([designs[at] for at in places])  # (free, x, keys)
        constant = float(floats(column([self.layer.constant]))[0, 0])

        def solved(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            D = np.hstack([np.einsum("f,fxe->xe", one, chosen) for one in b])
            keys = np.linalg.lstsq(D.T @ form @ D, D.T @ linear[:, 0], rcond=1e-13)[0]
            return D @ keys, keys.reshape(count, -1)

        def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
            b = flat.reshape(count, -1)
            size = np.linalg.norm(b, axis=1, keepdims=True)
            x, keys = solved(b / size)
            slope = np.einsum("x,fxe,he->hf", form @ x - linear[:, 0], chosen, keys)
            return (constant - linear[:, 0] @ x) / 2 / constant, (slope / size / constant).ravel()

        ends = []
        for _ in range(starts):
            start = np.array([rng.gauss(0, 1) for _ in range(count * len(places))])
            end = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-13, "maxiter": 500})
            ends.append((end.fun, end.x))
        best = min(ends, key=lambda end: end[0])[1].reshape(count, -1)
        best /= np.abs(best).max(axis=1, keepdims=True)
        _, keys = solved(best)
        b = [[fmpq(0)] * self.width for _ in range(count)]
        for h, at in product(range(count), range(len(places))):
            b[h][places[at]] = fmpq(round(float(best[h, at]) * DIGITS), DIGITS)
        if count == 1:
            return self.at(b[0])
        rows = [[fmpq(round(float(e) * DIGITS), DIGITS) for e in one] for one in keys]
        x = sum(
            (self._design(one) * column(row) for one, row in zip(b, rows, strict=True)), 0 * self.layer.linear
        )
        return Head(self.layer.half_risk(x), b, [self._split(row) for row in rows])

    def at(self, b: Sequence[fmpq]) -> Head:
        """Return the head of this b with the best keys."""
        D = self._design(b)
        keys = (D.transpose() * self.layer.form * D).solve(D.transpose() * self.layer.linear)
        return Head(self.layer.half_risk(D * keys), [list(b)], [self._split(keys.entries())])

    def determinant(self, b: Sequence[fmpq], level: fmpq) -> fmpq:
        """Return what is negative where a head of this b has a risk below the level."""
        D = self._design(b)
        F, slope = D.transpose() * self.layer.form * D, D.transpose() * self.layer.linear
        size = F.nrows()
        bordered = fmpq_mat(size + 1, size + 1)
        for i in range(size):
            bordered[i, size] = bordered[size, i] = -slope[i, 0]
            for j in range(size):
                bordered[i, j] = F[i, j]
        bordered[size, size] = self.layer.constant - 2 * level
        return bordered.det()

    def all_above(self, level: fmpq, free: Sequence[bool]) -> bool:
        """Return whether a proof was found that all heads with b nonzero at `free`, two or three entries,
        have a risk above the level."""
        places = [at for at, is_free in enumerate(free) if is_free]
        degree = 2 * self.designs[0].ncols()
        for face in places:
            others = [at for at in places if at != face]

            def value(*t: fmpq, face: int = face, others: list[int] = others) -> fmpq:
                b = [fmpq(0)] * self.width
                b[face] = fmpq(1)
                for at, share in zip(others, t, strict=True):
                    b[at] = 2 * share - 1
                return self.determinant(b, level)

            if not is_positive(value, degree, len(others)):
                return False
        return True

    def _design(self, b: Sequence[fmpq]) -> fmpq_mat:
        return sum((e * D for e, D in zip(b, self.designs, strict=True) if e), 0 * self.designs[0])

    def _split(self, keys: Sequence[fmpq]) -> list[list[fmpq]]:
        return [list(keys[i : i + self.width]) for i in range(0, len(keys), self.width)]


def is_positive(value: Callable[..., fmpq], degree: int, variables: int) -> bool:
    """Return whether a polynomial of one or two variables, of this degree in each, was shown to be positive
    on [0, 1] in each."""
    nodes = [fmpq(i, degree) for i in range(degree + 1)]
    to_bernstein = matrix(
        [comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)] for t in nodes
    ).inv()
    if variables == 1:
        values = (to_bernstein * column(value(t) for t in nodes)).transpose()
    else:
        values = to_bernstein * matrix([value(t, u) for u in nodes] for t in nodes) * to_bernstein.transpose()
    scale = KEPT / max(abs(e) for e in values.entries())
    left, boxes = [[[_floor(e * scale) for e in row] for row in values.tolist()]], 0
    while left:
        table, boxes = left.pop(), boxes + 1
        if min(map(min, table)) > 0:
            continue
        if min(table[0][0], table[0][-1], table[-1][0], table[-1][-1]) <= 0 or boxes > BOXES:
            return False
        halves = _halves(table)
        left += halves if variables == 1 else map(_turned, halves)  # the other variable is next
    return True


def _turned(table: Table) -> Table:
    return [list(row) for row in zip(*table, strict=True)]


def _halves(rows: Table) -> list[Table]:
    """Return the coefficients on both halves of every row, by de Casteljau's scheme, rounded down."""
    low, high = [], []
    for row in rows:
        first, last, now = [row[0]], [row[-1]], row
        while len(now) > 1:
            now = [(a + b) >> 1 for a, b in pairwise(now)]
            first.append(now[0])
            last.append(now[-1])
        low.append(first)
        high.append(last[::-1])
    return [low, high]


def _floor(x: fmpq) -> int:
    return int(x.p // x.q)


def floats(x: fmpq_mat) -> np.ndarray:
    return np.array([[int(e.p) / int(e.q) for e in row] for row in x.tolist()])
