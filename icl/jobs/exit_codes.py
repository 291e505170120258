"""Exit codes."""

from collections.abc import Mapping
from typing import Any

OK, UNEXPECTED, INPUT, UNDECIDED, FAILED = 0, 1, 2, 3, 4
_PRECEDENCE = (130, 143, INPUT, FAILED, UNEXPECTED, UNDECIDED)


def exit_code(document: Mapping[str, Any]) -> int:
    """Return the exit code of a document: of its verdicts and failures and of those of its parts the one
    that comes first in the order of precedence."""
    parts = [part for name in ("checks", "figures") for part in document.get(name) or []]
    own = [document] if "verdict" in document else []
    own += [*document.get("claims", []), *document.get("verdicts", [])]
    unexpected = [claim["verdict"] for claim in own if claim["verdict"] != claim["expected"]]
    codes = {UNDECIDED if verdict == "undecided" else UNEXPECTED for verdict in unexpected}
    codes |= set(map(exit_code, parts))
    codes |= {result["exit_code"] for result in document.get("results", [])}  # of a multirun
    if document.get("failures") or document.get("status") == "failed":
        codes.add(FAILED)
    return next((code for code in _PRECEDENCE if code in codes), OK)
