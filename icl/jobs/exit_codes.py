"""Exit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OK, UNEXPECTED, INPUT, UNDECIDED, FAILED = 0, 1, 2, 3, 4
_PRECEDENCE = (130, 143, INPUT, FAILED, UNEXPECTED, UNDECIDED)


def combine(codes: Sequence[int]) -> int:
    """Return the code of several parts: the one that comes first in the order of precedence."""
    return next((code for code in _PRECEDENCE if code in codes), OK)


def exit_code(document: Mapping[str, Any]) -> int:
    """Return the exit code of a document, from its verdicts and failures and those of its parts."""
    parts = [part for name in ("checks", "figures") for part in document.get(name) or []]
    claims = (
        [document] if "verdict" in document else [*document.get("claims", []), *document.get("verdicts", [])]
    )
    codes = [_code(claim["verdict"], claim["expected"]) for claim in claims] + [
        exit_code(part) for part in parts
    ]
    codes += [result["exit_code"] for result in document.get("results", [])]  # of a multirun
    failed = len(document.get("failures", [])) + (document.get("status") == "failed")
    return combine([*codes, *[FAILED] * failed])


def _code(verdict: str, expected: str) -> int:
    if verdict == expected:
        return OK
    return UNDECIDED if verdict == "undecided" else UNEXPECTED
