"""How something ended, as the contract's exit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OK, UNEXPECTED, INPUT, UNDECIDED, FAILED = 0, 1, 2, 3, 4
_PRECEDENCE = (130, 143, INPUT, FAILED, UNEXPECTED, UNDECIDED)


def worst(codes: Sequence[int]) -> int:
    """Of several parts, the code that applies first in the contract's order."""
    return next((code for code in _PRECEDENCE if code in codes), OK)


def code_of(document: Mapping[str, Any]) -> int:
    """Of a check, a figure or a run by its verdicts; of many by theirs, and by what failed."""
    parts = [part for name in ("checks", "figures") for part in document.get(name) or []]
    said = (
        [document] if "verdict" in document else [*document.get("claims", []), *document.get("verdicts", [])]
    )
    codes = [_code(claim["verdict"], claim["expected"]) for claim in said] + [code_of(part) for part in parts]
    failed = len(document.get("failures", [])) + (document.get("status") == "failed")
    return worst([*codes, *[FAILED] * failed])


def _code(verdict: str, expected: str) -> int:
    if verdict == expected:
        return OK
    return UNDECIDED if verdict == "undecided" else UNEXPECTED
