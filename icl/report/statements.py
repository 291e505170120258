"""Statements of a report, one for each check and each claim of a figure, and their counts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icl.report.content import ReportContent, ReportEntry
from icl.report.ruler import Marks
from icl.text import Relation, is_number, kind_in_words, named_values, relation, typeset, typeset_inequality
from icl.verdicts import KINDS

_SHORT_VALUE = 48  # letters
_RANKS = ("Theorem", "Proposition", "Corollary", "Lemma")  # a false theorem weighs more than a false lemma
_NAMED = re.compile(r"(Theorem|Proposition|Corollary|Lemma|Remark|Appendix)s? ([\w.]*\w)")
_FIGURE = re.compile(r"Figure \w+")
_PANELS = re.compile(r"\((\w)\)(?:(-| and |, )\((\w)\))?")


@dataclass(frozen=True)
class ReportedControl:
    description: str
    measured: str
    rejected: bool
    value: float | None = None


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
    wanted: str = "<"  # the side of the bound on which the claim puts what was measured
    kinds: Mapping[str, str] = field(default_factory=dict)  # of the numbers by name, in words
    kind_in_words: str = ""  # of the number that decides

    @property
    def rank(self) -> int:
        """Theorems first, then what leads to them, other sentences, what a figure shows, our own."""
        word = self.entry.reference.partition(" ")[0]
        if self.entry.group == "check":
            return _RANKS.index(word) if word in _RANKS else len(_RANKS)
        return len(_RANKS) + 1 + self.is_own

    @property
    def short_reference(self) -> str:
        """Theorem 1, Figure 3; of what has no such name its id in words: gd plus plus."""
        if self.entry.group == "figure" and (figure := _FIGURE.search(self.entry.reference)):
            return figure[0]
        if named := _NAMED.match(self.entry.reference):
            return f"{named[1]} {named[2]}"
        return self.entry.id.rpartition("/")[2].replace("_", " ")

    @property
    def inequality(self) -> str:
        """gradient norm 6.27 × 10⁻¹⁵ < 7.26 × 10⁻¹¹"""
        if self.decided is None:
            return typeset(self.measured)
        return typeset_inequality(self.decided)

    @property
    def reason(self) -> str:
        """The reason in one line: for what is false, the finding about it; else the measurement."""
        if self.verdict == "fails" and self.remarks:
            return re.split(r"(?<=[a-z)\d]\.) ", self.remarks[0], maxsplit=1)[0]
        return self.inequality

    @property
    def panels(self) -> tuple[str, ...]:
        """Panels named at the beginning of a figure's claim, such as (a)-(c)."""
        match = _PANELS.match(self.claim)
        if match is None:
            return ()
        first, between, last = match.groups()
        if between == "-":
            return tuple(map(chr, range(ord(first), ord(last) + 1)))
        return (first, last) if last else (first,)

    @property
    def marks(self) -> Marks | None:
        """Marks of a ruler: the side on which the statement would be true, and the control where it lies on
        the other side of the bound than what was measured."""
        if self.decided is None or not _finite(self.decided.value) or not _finite(self.bound):
            return None
        value, bound = float(self.decided.value), float(self.bound or 0)
        below = value < bound or (value == bound and self.wanted == "<")
        sides = "<>" if below else "><"
        wanted = {"holds": sides[0], "fails": sides[1]}.get(self.verdict, self.wanted)
        control = self.control.value if self.control else None
        beyond = control is not None and (
            control > bound if below else min(0, value, bound) <= control < bound
        )
        return Marks(value, bound, wanted, control if beyond else None)

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected

    @property
    def kind(self) -> str:
        """Name in the page's filters."""
        return self.verdict or "open"

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return named_values(self.measured)

    @property
    def short_pairs(self) -> list[tuple[str, str]]:
        """The first, as a rule what the bound is of, and those of the others that fit into a table."""
        return [*self.pairs[:1], *(pair for pair in self.pairs[1:] if len(pair[1]) <= _SHORT_VALUE)]

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
    remarks = [str(remark) for remark in document.get("remarks") or []]
    notes = [str(note) for note in document.get("notes") or []]
    return Statement(
        place,
        entry,
        str(document.get("claim", "")),
        str(document.get("verdict", "")),
        str(document.get("expected", "holds")),
        document.get("measured"),
        _number(bound.get("value")),
        relation(document.get("measured") or {}, bound),
        str(bound.get("source", "")),
        _control(control) if control else None,
        remarks,
        [note for note in notes if note not in remarks],
        wanted=str(bound.get("direction", "<")),
        kinds={name: kind_in_words(document, name) for name in document.get("kinds") or {}},
        kind_in_words=kind_in_words(document, str(bound.get("of", ""))),
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
        [str(remark) for remark in claim.get("remarks") or []],
        [str(note) for note in claim.get("notes") or []],
        claim.get("whose") == "project",
        kind_in_words=KINDS.get(str(claim.get("kind", "")), ""),
    )


def _control(control: Mapping[str, Any]) -> ReportedControl:
    described, measured = str(control.get("description", "")), typeset(control.get("measured"), nested=True)
    return ReportedControl(
        described, measured, bool(control.get("rejected")), _number(control.get("measured"))
    )


def _number(value: Any) -> float | None:
    return value if is_number(value) else None


def _finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)
