"""A claim a figure makes: what was measured, against which bound, and what is expected to be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icl.errors import one_of
from icl.verdicts import KINDS, VERDICTS, decide


@dataclass(frozen=True)
class Claim:
    """`trained`: says something of trained weights, which smoke trains too little to decide. `remarks`: what
    was found about the paper's own text. `whose` sentence it is: the paper's, or one this project adds.
    `kind`: of the numbers that decide, exact, sampled, ... (icl.verdicts.KINDS)."""

    claim: str
    measured: Any
    bound: str
    verdict: str
    expected: str = "holds"
    trained: bool = True
    remarks: Sequence[str] = ()
    whose: str = "paper"
    kind: str = ""

    def __post_init__(self) -> None:
        one_of("whose", self.whose, ("paper", "project"))
        one_of("verdict", self.verdict, VERDICTS)
        one_of("expected", self.expected, VERDICTS)
        one_of("kind", self.kind, ["", *KINDS])


def above(measured: float, bound: float, half_width: float = 0.0) -> str:
    """Is `measured` above the bound? Strictly: the opposite of at most."""
    at_most = decide(measured, bound, half_width)
    return {"holds": "fails", "fails": "holds"}.get(at_most, at_most)


def below(measured: float, bound: float, half_width: float = 0.0) -> str:
    """Is `measured` below the bound? Strictly."""
    return above(-measured, -bound, half_width)
