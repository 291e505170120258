"""The three verdicts, how they are decided, combined and counted, their signs, and the kinds of numbers that
they rest on."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

VERDICTS = ("holds", "fails", "undecided")
KNOWN_FALSE = "known false"  # it fails, as is expected: no mark of a broken run
SIGNS = {"holds": "✓", KNOWN_FALSE: "¬", "fails": "✗", "undecided": "?"}
_WORST_FIRST = ("fails", "undecided", "holds", KNOWN_FALSE)
Claim = Mapping[str, Any]  # with its verdict, and the one that is expected

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


def word(claim: Claim) -> str:
    """Return the verdict; one that fails as expected is known false."""
    verdict = str(claim["verdict"])
    return KNOWN_FALSE if verdict == claim["expected"] == "fails" else verdict


def joint_sign(claims: Sequence[Claim]) -> str:
    """Return the sign of several claims together: of one that fails, else of one that is undecided."""
    words = set(map(word, claims))
    return next(SIGNS[one] for one in _WORST_FIRST if one in words)


def short(claim: Claim) -> str:
    """Return the verdict with its sign, and a mark where it is another than expected."""
    return f"{SIGNS[word(claim)]} {word(claim)}{'' if claim['verdict'] == claim['expected'] else ' !'}"


def outcome(claim: Claim) -> str:
    """Return the verdict with its sign and, where it is another than expected, what was expected."""
    return short(claim).replace(" !", f" (expected: {claim['expected']})")


def totals(claims: Sequence[Claim]) -> str:
    """Return counts: `31 hold, 3 known false, 17 undecided, 1 other than expected`."""
    counts = Counter(word(claim) for claim in claims if claim["verdict"] == claim["expected"])
    counts["other than expected"] = len(claims) - counts.total()
    words = ("holds", KNOWN_FALSE, "undecided", "other than expected")
    told = ", ".join(f"{counts[one]} {one}" for one in words if counts[one])
    return re.sub(r"(?<!\b1) holds", " hold", told)


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
