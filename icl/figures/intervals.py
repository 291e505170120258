"""Intervals that a figure's claims are decided by."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    low: float
    middle: float
    high: float

    def below(self, bound: float) -> str:
        """Return the verdict on whether all of it is below the bound."""
        if self.high < bound:
            return "holds"
        return "fails" if self.low >= bound else "undecided"
