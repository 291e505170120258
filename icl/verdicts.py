"""The three verdicts, how they are decided and combined, and the kinds of numbers they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

VERDICTS = ("holds", "fails", "undecided")

# How a measured number came about, and the words for it.
KINDS = {
    "exact": "exact",  # from formulas: no error but rounding
    "tried": "at points tried",  # the same at prompts, weights or problems, drawn or given: the worst of them
    "searched": "found by search",  # the best that a search found: another may find a better one
    "sampled": "sampled",  # of random draws: it has a standard error, or an interval
    "projected": "projected",  # exact, but of the nearest weights on a theorem's set
}

# How a number is known a second time, and the words for it.
ROUTES = {
    "computed": "second route",  # computed again by the check, the two compared within a bound fixed before
    "compared": "second route",  # the same, and the comparison is a number of the check with its own bound
    "tests": "in the tests",  # computed again by a test only, where that takes too long for a check
    "definition": "by definition",  # an input, a count or a bound: there is nothing to compute twice
    "none": "one route",
}
ROUTE_ROUNDING = 1e-9  # relative difference of two computations that rounding explains


def joint(verdicts: Sequence[str]) -> str:
    """Combine the verdicts of several parts: one that fails decides; else one that is undecided."""
    return next((verdict for verdict in ("fails", "undecided") if verdict in verdicts), "holds")


def kinds_of(measured: Mapping[str, Any], declared: Mapping[str, str], decides: str = "") -> dict[str, str]:
    """Return the kind of each number. What has a standard error is sampled, whatever is declared, unless the
    error is 0. A whole number that is exact needs no word, but for the one that decides."""
    errors, kinds = set(map(error_of, measured)), {}
    for name in (name for name in measured if name not in errors):
        kind = "sampled" if has_error(measured.get(error_of(name))) else declared.get(name, "")
        counts = isinstance(measured[name], int | str | None) and name != decides
        if kind and not (counts and kind == "exact"):
            kinds[name] = kind
    return kinds


def error_of(name: str) -> str:
    """Return the name of this number's standard error, where there is one."""
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
