"""What a report is made of: plain values, collected by the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# stale: the document is of other code than today's, and is shown as such.
STATES = ("done", "stale", "failed", "skipped", "running", "waiting")


@dataclass(frozen=True)
class Entry:
    """One check or figure. `document` is what `icl check` or `icl figure` prints with format=json."""

    group: str  # check | figure
    id: str
    paper: str
    reference: str
    command: str  # makes exactly this
    state: str = "waiting"
    document: Mapping[str, Any] | None = None
    reason: str = ""  # why it failed, was skipped or is stale; of a waiting one: that nothing is under way
    record: Mapping[str, Any] = field(
        default_factory=dict
    )  # fingerprint, date and provenance of the document


@dataclass(frozen=True)
class Paper:
    """How a paper is named and found."""

    id: str
    title: str
    citation: str = ""
    link: str = ""


@dataclass(frozen=True)
class Book:
    """Everything one page shows."""

    scale: str
    papers: Sequence[Paper]
    entries: Sequence[Entry]
    provenance: Mapping[str, Any] = field(default_factory=dict)  # of the page itself, with `written`
