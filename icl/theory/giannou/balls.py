"""Balls: the greatest of some, and inequalities on a box, proved on cells that are halved where they do not
decide."""

from collections.abc import Callable, Iterable
from functools import reduce

from flint import arb, fmpq

MOST = 100_000  # cells


def greatest(balls: Iterable[arb]) -> arb:
    return reduce(arb.max, map(arb, balls))


def least(balls: Iterable[arb]) -> arb:
    return -greatest(-ball for ball in balls)


def positive(f: Callable[..., arb | None], *box: tuple[fmpq, fmpq]) -> bool | None:
    """Return whether f > 0 on the whole box, None if too many cells are needed. `f` takes balls and returns
    a ball, or None on a cell outside its domain."""
    left = [box]
    for _ in range(MOST):
        if not left:
            return True
        cell = left.pop()
        value = f(*(arb(low).union(arb(high)) for low, high in cell))
        if value is None or value > 0:
            continue
        if value <= 0:
            return False
        k = max(range(len(cell)), key=lambda k: cell[k][1] - cell[k][0])
        low, high = cell[k]
        for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
            left.append((*cell[:k], half, *cell[k + 1 :]))
    return None
