"""Bounds on what rounding in float64 makes of an exact zero."""

from __future__ import annotations

from icl.theory.quadratic import EPSILON

ROUNDING = 64 * EPSILON  # times the condition number or the size of the terms that the bound's source names


PATH = (
    "rounding: 2^-52 times the additions and products along one entry's path; errors are shares "
    "of the sum of the sizes of all terms of that entry"
)


def path_rounding(operations: int) -> float:
    """Return the bound whose source is PATH."""
    return EPSILON * operations
