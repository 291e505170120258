"""A claim a figure makes: what was measured, against which bound, and what is expected to be true.

Its numbers are floats of trained weights and of samples, which no control stands beside: they decide by a
bound that is stated, and are no numbers of a check (icl.checks.statement).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from icl.errors import one_of
from icl.text import brief
from icl.verdicts import KINDS, VERDICTS, decide, joint

_OPPOSITE = {"holds": "fails", "fails": "holds", "undecided": "undecided"}


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict.

    `trained`: says something of trained weights, which smoke trains too little to decide. `remarks`: what
    was found about the paper's own text. `at_paper`: what is expected at scale=paper, where it differs.
    `whose` sentence it is: the paper's, or one this project adds.
    `kind`: of the numbers that decide, exact, sampled, ... (icl.verdicts.KINDS). `reason`: why it is
    undecided at these settings.
    """

    claim: str
    measured: Any
    bound: str
    verdict: str
    expected: str = "holds"
    trained: bool = True
    remarks: Sequence[str] = ()
    whose: str = "paper"
    kind: str = ""
    reason: str = ""
    at_paper: str = ""

    def __post_init__(self) -> None:
        one_of("whose", self.whose, ("paper", "project"))
        one_of("verdict", self.verdict, VERDICTS)
        one_of("expected", self.expected, VERDICTS)
        one_of("at_paper", self.at_paper, ("", *VERDICTS))
        if self.verdict != "undecided":
            one_of("kind", self.kind, list(KINDS))

    def document(self, scale: str, other: Mapping[str, Any], remark: str) -> dict[str, Any]:
        """Return the claim's document. One about trained weights is undecided at smoke scale, and at `other`
        settings than the paper's, or with fewer steps, as `remark` says, where they do not confirm it."""
        document = asdict(self)
        trained, reason, at_paper = (document.pop(key) for key in ("trained", "reason", "at_paper"))
        if scale == "paper" and at_paper:
            document["expected"] = at_paper
        if trained and scale == "smoke":
            reason = reason or "training at scale=smoke is too short to decide it"
        elif trained and remark:
            document["remarks"] = [*document["remarks"], remark]
            if document["verdict"] != "holds":
                reason = reason or "training with fewer steps than the paper's can only confirm it"
        elif trained and other and document["verdict"] != document["expected"]:
            given = ", ".join(f"{key}={brief(value)}" for key, value in other.items())
            reason = (
                reason or f"it is about training at other settings than {given}, which can only confirm it"
            )
        if reason:
            document |= {"verdict": "undecided", "expected": "undecided", "reason": reason}
        return document

    @classmethod
    def of(cls, claim: str, measured: Any, decided: Decision, **more: Any) -> Self:
        """Return the claim that a number, or several, decide; `more` are the fields from `expected` on."""
        return cls(claim, measured, decided.source, decided.verdict, kind=decided.kind, **more)

    @classmethod
    def undecided(cls, claim: str, reason: str, **more: Any) -> Self:
        """Return a claim that these settings cannot decide."""
        return cls(claim, {}, "", "undecided", "undecided", reason=reason, **more)


@dataclass(frozen=True)
class Decision:
    """A verdict, the kind of number it rests on, and its bound in words."""

    verdict: str
    kind: str
    source: str = ""


@dataclass(frozen=True, eq=False)
class ClaimNumbers:
    """Numbers of a kind (icl.verdicts.KINDS) that decide together; one is undecided where the interval
    value +- half_width straddles the bound, or is NaN, and so are none."""

    kind: str
    values: ArrayLike
    half_widths: ArrayLike = 0.0

    def at_most(self, bound: SupportsFloat, source: str = "") -> Decision:
        return Decision(joint(self._at_most(1, bound)), self.kind, source)

    def above(self, bound: SupportsFloat, source: str = "") -> Decision:
        return Decision(joint([_OPPOSITE[v] for v in self._at_most(1, bound)]), self.kind, source)

    def below(self, bound: SupportsFloat, source: str = "") -> Decision:
        return Decision(joint([_OPPOSITE[v] for v in self._at_most(-1, bound)]), self.kind, source)

    def _at_most(self, sign: int, bound: SupportsFloat) -> list[str]:
        pairs = np.broadcast(np.asarray(self.values), np.asarray(self.half_widths))
        found = [decide(sign * float(value), sign * float(bound), float(half)) for value, half in pairs]
        return found or ["undecided"]


# From formulas: no error but rounding, which may be given as half a width.
exact = partial(ClaimNumbers, "exact")
# The best that a search found: another may find a better one.
searched = partial(ClaimNumbers, "searched")
# Averages of random draws, with half the widths of their intervals.
sampled = partial(ClaimNumbers, "sampled")


def all_of(source: str, *decisions: Decision) -> Decision:
    """Return the verdict of several decisions together."""
    return Decision(joint([part.verdict for part in decisions]), decisions[0].kind, source)
