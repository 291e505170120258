"""The sign of a verdict in the terminal, and how many verdicts of each kind there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from icl.verdicts import KNOWN_FALSE, SIGNS, in_view_of

Claim = Mapping[str, object]
_WORST_FIRST = ("fails", "undecided", "holds", KNOWN_FALSE)


def word(claim: Claim) -> str:
    """Return the verdict; one that fails as expected is known false."""
    return in_view_of(str(claim["expected"]), str(claim["verdict"]))


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
