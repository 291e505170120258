"""Content of a report as plain values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReportEntry:
    """One check or figure. `document` is what `icl check` or `icl figure` prints with format=json."""

    group: str  # check | figure
    id: str
    paper: str
    reference: str
    command: str  # makes exactly this
    state: str = "waiting"  # done | stale, of other code than today's | failed | skipped
    document: Mapping[str, Any] | None = None
    reason: str = ""  # why it failed, was skipped or is stale
    record: Mapping[str, Any] = field(default_factory=dict)  # fingerprint, date, provenance of the document
    formula: str = ""  # the claim in LaTeX
    title: str = ""  # "Theorem 1: the best single layer"
    origin: str = ""  # "icl" where the statement is this project's own
    is_mine: bool = False  # at settings of the reader's own, or a statement of the reader's own file

    @property
    def place(self) -> str:
        """Id, and the fingerprint where the page has several of this id."""
        return f"{self.id}/{self.record.get('fingerprint')}" if self.is_mine else self.id

    @property
    def heading(self) -> str:
        """Title, else the reference, else the id."""
        return self.title if self.title not in ("", self.id) else self.reference or self.id

    @property
    def is_own(self) -> bool:
        return self.origin == "icl"


Paper = Mapping[str, Any]  # conf/paper/ID.yaml, whole; text may have LaTeX between dollar signs


def paper_of(
    id: str,
    title: str,
    citation: str = "",
    link: str = "",
    terms: Sequence[Mapping[str, str]] | None = None,
    highlights: Sequence[Mapping[str, Any]] | None = None,
) -> Paper:
    """Return a paper with what its config may leave out."""
    about = {"id": id, "title": title, "citation": citation, "link": link}
    return {**about, "terms": terms or [], "highlights": highlights or []}


@dataclass(frozen=True)
class ReportContent:
    """Everything one page shows."""

    scale: str
    papers: Sequence[Paper]
    entries: Sequence[ReportEntry]
    provenance: Mapping[str, Any] = field(default_factory=dict)  # of the page itself, with `written`
    only: Sequence[str] = ()  # the papers that were asked for, where not all were
    mine: Sequence[ReportEntry] = ()  # what the reader has checked and drawn, newest first

    @property
    def name(self) -> str:
        """Name of its page: one for each scale and choice of papers."""
        return re.sub(r"[^\w.-]", "_", "-".join([self.scale, *self.only]))
