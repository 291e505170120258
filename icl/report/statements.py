"""Statements of a report, one for each check and each claim of a figure, and their counts."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icl.report.entries import ReportEntry
from icl.text import WRITTEN, ShownNumber, brief, numbers, tries_in_words
from icl.verdicts import KINDS, SIGNS, totals, word

_RANKS = ("Theorem", "Proposition", "Corollary", "Lemma")  # a false theorem weighs more than a false lemma
_SENTENCE_END = re.compile(r"(?<=[a-z)\d]\.)(?<!\beq\.) ")
_SAYS_FALSE = re.compile(r"\b(false|counterexample)\b")
_WHY_UNDECIDED = re.compile(r"undecided\b|.*\bscale=paper\b", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """A check or a claim of a figure, as the page and a notebook show it."""

    anchor: str
    entry: ReportEntry
    found: Mapping[str, Any] = field(default_factory=dict)  # the check's document, or the claim in a figure's

    @property
    def title(self) -> str:
        return self.entry.heading

    @property
    def claim(self) -> str:
        return str(self.found.get("claim", ""))

    @property
    def verdict(self) -> str:
        return str(self.found.get("verdict", ""))

    @property
    def expected(self) -> str:
        return str(self.found.get("expected", "holds"))

    @property
    def as_expected(self) -> bool:
        return self.verdict == self.expected

    @property
    def outcome(self) -> str:
        return word({"verdict": self.verdict, "expected": self.expected})

    @property
    def sign(self) -> str:
        return SIGNS.get(self.outcome, "?")

    @property
    def mark(self) -> str:
        """Name in the page's filters and styles."""
        return self.outcome.replace(" ", "-")

    @property
    def is_own(self) -> bool:
        """Return whether it is a sentence that this project adds to the paper's."""
        return self.entry.is_own or self.found.get("whose") == "project"

    @property
    def rank(self) -> int:
        """Theorems first, then what leads to them, and other sentences."""
        word = self.entry.reference.partition(" ")[0]
        return _RANKS.index(word) if word in _RANKS else len(_RANKS)

    @property
    def numbers(self) -> list[ShownNumber]:
        """Every number; the one that decides is first."""
        if self.entry.group == "figure":
            kind = KINDS.get(str(self.found.get("kind", "")), "")
            found = self.found.get("measured")
            table = found if isinstance(found, Mapping) else {"": found}
            return [ShownNumber(str(k), brief(v, nested=k != ""), kind, "") for k, v in table.items()]
        measured, bound = self.found.get("measured") or {}, {"of": "", **(self.found.get("bound") or {})}
        shown = numbers({**self.found, "measured": measured, "bound": bound})
        return sorted(shown, key=lambda number: number.name != bound["of"])

    @property
    def bound(self) -> str:
        """Return a claim's bound, or where a check's is from."""
        bound = self.found.get("bound")
        return str(bound.get("source", "")) if isinstance(bound, Mapping) else brief(bound)

    @property
    def controls(self) -> list[tuple[str, str, bool]]:
        """Description, value and whether it was rejected, of each control: a fraction where it is short."""
        one = self.found.get("control")
        found = []
        for control in self.found.get("controls") or ([one] if one else []):
            exact, measured = str(control.get("exact") or ""), control.get("measured")
            value = exact if 0 < len(exact) <= WRITTEN else brief(measured, nested=True)
            found.append((str(control.get("description", "")), value, bool(control.get("rejected"))))
        return found

    @property
    def tries(self) -> str:
        """holds at 20 of 20 random settings."""
        tries = self.found.get("tries") or {}
        return f"{told} of {tries['decided']} random settings" if (told := tries_in_words(tries)) else ""

    @property
    def proof(self) -> list[str]:
        """Return what the verdict of a check rests on: a number, random settings, a control."""
        first, controls = self.numbers[:1], self.controls[:1]
        number = [f"{n.name} {n.value}{f' ({n.kind})' if n.kind else ''}" for n in first if n.value]
        rejected = [f"control {value} {'' if ok else 'not '}rejected" for _, value, ok in controls]
        return [part for part in (*number, self.tries, *rejected) if part]

    @property
    def remarks(self) -> list[str]:
        """Notes on the paper's own text."""
        return self._texts("remarks")

    @property
    def notes(self) -> list[str]:
        """The other notes: how it was measured."""
        return [note for note in self._texts("notes") if note not in self.remarks]

    def _texts(self, name: str) -> list[str]:
        """Return remarks or notes; those that say what would decide only where nothing is decided."""
        texts = [str(text) for text in self.found.get(name) or []]
        return [text for text in texts if self.verdict == "undecided" or not _WHY_UNDECIDED.match(text)]

    @property
    def reason(self) -> str:
        """Return in one sentence what is false: what a remark says is, else its first; of a claim numbers."""
        every = [sentence for remark in self.remarks for sentence in _SENTENCE_END.split(remark)]
        if self.entry.group == "figure":
            every += ["; ".join(f"{n.name} {n.value}".strip() for n in self.numbers[:3])]
        return next(filter(_SAYS_FALSE.search, every), (every or [""])[0])


def statements(entries: Iterable[ReportEntry]) -> list[Statement]:
    return [statement for entry in entries for statement in statements_of(entry)]


def statements_of(entry: ReportEntry) -> list[Statement]:
    """Return the statement of a check, or the claims of a figure; none where it has no result."""
    if entry.document is None:
        return []
    if entry.group == "check":
        return [Statement(anchor(entry), entry, entry.document)]
    claims = enumerate(entry.document.get("claims") or [], 1)
    return [Statement(f"{anchor(entry)}-{index}", entry, claim) for index, claim in claims]


def count(found: Iterable[Statement], entries: Iterable[ReportEntry] = ()) -> Counter[str]:
    """Count statements by outcome, and checks and figures without a result by their state."""
    counts = Counter(statement.outcome for statement in found)
    counts.update(entry.state for entry in entries if entry.document is None)
    return counts


def sentence(found: Sequence[Statement]) -> str:
    """Return the verdicts: `31 hold, 3 known false, 17 undecided.`"""
    told = totals([{"verdict": one.verdict, "expected": one.expected} for one in found])
    return f"{told}." if told else ""


def anchor(entry: ReportEntry) -> str:
    """Return the entry's place on the page."""
    return re.sub(r"[^\w.-]", "-", f"{entry.group}-{entry.place}")
