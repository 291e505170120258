"""Statements of a report, one for each check and each claim of a figure, and their counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icl.report.content import ReportContent, ReportEntry
from icl.text import (
    Relation,
    ShownNumber,
    is_number,
    kind_in_words,
    named_values,
    numbers,
    relation,
    typeset,
    typeset_inequality,
)
from icl.verdicts import KINDS

_RANKS = ("Theorem", "Proposition", "Corollary", "Lemma")  # a false theorem weighs more than a false lemma
_SENTENCE_END = re.compile(r"(?<=[a-z)\d]\.)(?<!\beq\.) ")
_SAYS_FALSE = re.compile(r"\b(false|counterexample)\b")
_WHY_UNDECIDED = re.compile(r"undecided\b|.*\bscale=paper\b", re.IGNORECASE)


@dataclass(frozen=True)
class ReportedControl:
    description: str
    measured: str
    rejected: bool


@dataclass(frozen=True)
class Statement:
    """One line of a paper's table. `verdict` is empty where nothing is known yet."""

    anchor: str
    entry: ReportEntry
    claim: str
    verdict: str = ""
    expected: str = ""
    measured: Any = None
    bound: float | None = None
    decided: Relation | None = None  # of a check: the inequality it rests on
    source: str = ""  # of the bound; of a figure's claim, the bound in words
    control: ReportedControl | None = None
    remarks: Sequence[str] = ()  # on the paper's own text
    notes: Sequence[str] = ()  # the other notes: how it was measured
    is_own: bool = False  # a sentence that this project adds to the paper's
    kinds: Mapping[str, str] = field(default_factory=dict)  # of the numbers by name, in words
    kind_in_words: str = ""  # of the number that decides
    numbers: Sequence[ShownNumber] = ()
    sentence: str = ""  # verdict, settings, measurement and bound
    control_sentence: str = ""

    @property
    def title(self) -> str:
        return self.entry.heading

    @property
    def short_title(self) -> str:
        """Title up to its colon: Theorem 1, Figure 3."""
        return self.title.partition(": ")[0]

    @property
    def rank(self) -> int:
        """Theorems first, then what leads to them, other sentences, what a figure shows, our own."""
        word = self.entry.reference.partition(" ")[0]
        if self.entry.group == "check":
            return _RANKS.index(word) if word in _RANKS else len(_RANKS)
        return len(_RANKS) + 1 + self.is_own

    @property
    def inequality(self) -> str:
        """gradient norm 6.27 × 10⁻¹⁵ < 7.26 × 10⁻¹¹"""
        if self.decided is None:
            return typeset(self.measured)
        return typeset_inequality(self.decided)

    @property
    def reason(self) -> str:
        """The reason in one sentence: what a remark says is false, else its first sentence, else the
        measurement."""
        every = [sentence for remark in self.remarks for sentence in _SENTENCE_END.split(remark)]
        return next(filter(_SAYS_FALSE.search, every), every[0] if every else self.inequality)

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected

    @property
    def kind(self) -> str:
        """Name in the page's filters."""
        return self.verdict or "open"

    @property
    def bound_text(self) -> str:
        if self.bound is None:
            return ""
        text = typeset(self.bound, 3)
        return text if self.decided is None else f"{self.decided.sign} {text}"


@dataclass(frozen=True)
class Counts:
    """Numbers of statements by verdict, and of checks and figures that wait, failed or were skipped."""

    holds: int
    fails: int
    undecided: int
    unexpected: int
    waiting: int
    failed: int
    skipped: int
    entries: int
    own: int  # sentences that this project adds
    fails_unexpected: int = 0  # of those that fail

    @property
    def statements(self) -> int:
        return self.holds + self.fails + self.undecided

    @property
    def done(self) -> int:
        return self.entries - self.waiting - self.skipped


def statements(content: ReportContent) -> list[Statement]:
    return [statement for entry in content.entries for statement in _statements(entry)]


def count(found: Sequence[Statement], entries: Sequence[ReportEntry]) -> Counts:
    verdicts = Counter(statement.verdict for statement in found)
    states = Counter(entry.state for entry in entries)
    unexpected = sum(bool(s.verdict) and not s.as_expected for s in found)
    waiting = states["waiting"] + states["running"]
    return Counts(
        holds=verdicts["holds"],
        fails=verdicts["fails"],
        undecided=verdicts["undecided"],
        unexpected=unexpected,
        waiting=waiting,
        failed=states["failed"],
        skipped=states["skipped"],
        entries=len(entries),
        own=sum(bool(s.verdict) and s.is_own for s in found),
        fails_unexpected=sum(s.verdict == "fails" and not s.as_expected for s in found),
    )


def first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def anchor(entry: ReportEntry) -> str:
    """Return the entry's place on the page."""
    return re.sub(r"[^\w.-]", "-", f"{entry.group}-{entry.id}")


def _statements(entry: ReportEntry) -> Iterator[Statement]:
    document, place = entry.document, anchor(entry)
    if document is None:
        yield Statement(place, entry, "")
    elif entry.group == "check":
        yield _of_check(entry, document, place)
    else:
        for index, claim in enumerate(document.get("claims") or [], 1):
            yield _of_claim(entry, claim, f"{place}-{index}")


def _of_check(entry: ReportEntry, document: Mapping[str, Any], place: str) -> Statement:
    bound, control = document.get("bound") or {}, document.get("control")
    verdict, remarks = str(document.get("verdict", "")), _texts(document, "remarks")
    return Statement(
        place,
        entry,
        str(document.get("claim", "")),
        verdict,
        str(document.get("expected", "holds")),
        document.get("measured"),
        _number(bound.get("value")),
        relation(document.get("measured") or {}, bound),
        str(bound.get("source", "")),
        _control(control) if control else None,
        remarks,
        [note for note in _texts(document, "notes") if note not in remarks],
        entry.is_own,
        kinds={name: kind_in_words(document, name) for name in document.get("kinds") or {}},
        kind_in_words=kind_in_words(document, str(bound.get("of", ""))),
        numbers=list(numbers(_complete(document))),
        sentence=str(document.get("sentence") or ""),
        control_sentence=str(document.get("control_sentence") or ""),
    )


def _of_claim(entry: ReportEntry, claim: Mapping[str, Any], place: str) -> Statement:
    bound, control = claim.get("bound"), claim.get("control")
    return Statement(
        place,
        entry,
        str(claim.get("claim", "")),
        str(claim.get("verdict", "")),
        str(claim.get("expected", "holds")),
        claim.get("measured"),
        _number(bound),
        None,
        "" if isinstance(bound, int | float) else typeset(bound),
        _control(control) if control else None,
        _texts(claim, "remarks"),
        _texts(claim, "notes"),
        entry.is_own or claim.get("whose") == "project",
        kind_in_words=KINDS.get(str(claim.get("kind", "")), ""),
        numbers=[ShownNumber(name, text, "", "") for name, text in named_values(claim.get("measured"))],
    )


def _texts(document: Mapping[str, Any], name: str) -> list[str]:
    """Return remarks or notes; those that say what would decide only where nothing is decided."""
    undecided = document.get("verdict") == "undecided"
    texts = [str(text) for text in document.get(name) or []]
    return [text for text in texts if undecided or not _WHY_UNDECIDED.match(text)]


def _complete(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a check, of an older record as well, as numbers are read from it."""
    bound = {"of": "", **(document.get("bound") or {})}
    return {**document, "measured": document.get("measured") or {}, "bound": bound}


def _control(control: Mapping[str, Any]) -> ReportedControl:
    described, measured = str(control.get("description", "")), typeset(control.get("measured"), nested=True)
    return ReportedControl(described, measured, bool(control.get("rejected")))


def _number(value: Any) -> float | None:
    return value if is_number(value) else None
