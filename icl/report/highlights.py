"""A paper's highlights: sentences whose numbers are those of the records, and what they stand on."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from icl.report.entries import ReportEntry
from icl.text import brief

_NUMBER = re.compile(r"\{([\w.-]+/[\w.-]+) ([^{}]+)\}")  # {PAPER/ID optimal_risk}


def sentences(text: Sequence[str], entries: Mapping[str, ReportEntry]) -> list[str]:
    """Fill in the numbers that are known; leave out sentences that lack one."""
    paragraphs = []
    for paragraph in text:
        kept = []
        for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", paragraph):
            found = {one[0]: value_of(entries.get(one[1]), one[2]) for one in _NUMBER.finditer(sentence)}
            if None not in found.values():
                kept.append(_NUMBER.sub(lambda match: brief(found[match[0]]), sentence))  # noqa: B023
        paragraphs += [" ".join(kept)] if kept else []
    return paragraphs


def value_of(entry: ReportEntry | None, name: str) -> Any:
    """Return a measured value of a check, its `bound`, `control` or `settings.KEY`; of a figure, the first
    that one of its claims measured under this name. None where it is not there."""
    document = (entry.document if entry is not None else None) or {}
    if name.startswith("settings."):
        return (document.get("settings") or {}).get(name.removeprefix("settings."))
    if "claims" in document:
        measured = [claim.get("measured") for claim in document["claims"]]
        return next((table[name] for table in measured if isinstance(table, Mapping) and name in table), None)
    if name in ("bound", "control"):
        return (document.get(name) or {}).get("value" if name == "bound" else "measured")
    return (document.get("measured") or {}).get(name)
