"""The three verdicts, how they are decided and combined, and the kinds of numbers they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

VERDICTS = ("holds", "fails", "undecided")
KNOWN_FALSE = "known false"  # it fails, as is expected: no mark of a broken run
SIGNS = {"holds": "✓", KNOWN_FALSE: "¬", "fails": "✗", "undecided": "?"}

# How a measured number came about, and the words for it.
KINDS = {
    "exact": "exact",  # from formulas: no error but rounding
    "ball": "enclosed",  # in an interval that arithmetic with balls keeps
    "tried": "at points tried",  # the same at prompts, weights or problems, drawn or given: the worst of them
    "searched": "found by search",  # the best that a search found: another may find a better one
    "sampled": "sampled",  # of random draws: it has a standard error, or an interval
    "projected": "projected",  # exact, but of the nearest weights on a theorem's set
}


def joint(verdicts: Sequence[str]) -> str:
    """Combine the verdicts of several parts: one that fails decides; else one that is undecided."""
    return next((verdict for verdict in ("fails", "undecided") if verdict in verdicts), "holds")


def in_view_of(expected: str, verdict: str) -> str:
    """Return the verdict, or that it is known false: what is shown, with a sign of each."""
    return KNOWN_FALSE if verdict == expected == "fails" else verdict


def error_of(name: str) -> str:
    """Return the name that this number's standard error has, if it was measured."""
    return f"{name}_stderr"


def has_error(error: Any) -> bool:
    """Return whether a standard error, or one of a nested list of them, is not zero."""
    return any(map(has_error, error)) if isinstance(error, list | tuple) else bool(error)


def decide(measured: float, bound: float, half_width: float = 0.0) -> str:
    """Compare `measured` with the most it may be; undecided where measured +- half_width straddles it."""
    if math.isnan(measured) or math.isnan(half_width):
        return "undecided"
    if measured + half_width <= bound:
        return "holds"
    return "fails" if measured - half_width > bound else "undecided"
