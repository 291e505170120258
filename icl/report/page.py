"""The page: a content as one folder of static files that opens from disk, without a server or a network."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.config.values import flatten
from icl.report import drawings, highlights, mathematics, pages
from icl.report.content import Highlight, Paper, ReportContent, ReportEntry, Term
from icl.report.statements import Counts, Statement, anchor, count, first_sentence, statements
from icl.runs import atomic, documents
from icl.text import typeset

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = Path(__file__).parent
_ABSENT = object()


@dataclass(frozen=True)
class Figure:
    """A figure as shown: its picture, its caption, and the runs it is drawn from."""

    entry: ReportEntry
    anchor: str
    picture: drawings.Picture
    caption: str
    drawn_from: Sequence[Mapping[str, Any]]
    statements: Sequence[Statement]

    @property
    def alt(self) -> str:
        """Alternative text: what the picture shows, and the verdicts of its claims."""
        return f"{self.entry.heading}. {self.caption} {self.sentence}".replace("  ", " ").strip()

    @property
    def sentence(self) -> str:
        return _sentence(count(self.statements, []))

    @property
    def untrue(self) -> list[Statement]:
        return [statement for statement in self.statements if statement.verdict == "fails"]

    @property
    def sources(self) -> list[tuple[str, list[str], dict[str, Any]]]:
        """Names, records and settings that this figure is drawn from: what all its records share stands
        first, then what is each one's own."""
        flat = [flatten(drawn["config"]) for drawn in self.drawn_from]
        every = [{key: value for key, value in found.items() if value is not None} for found in flat]
        shared = {k: v for k, v in (every or [{}])[0].items() if all(s.get(k, _ABSENT) == v for s in every)}
        found: list[tuple[str, list[str], dict[str, Any]]] = []
        if shared and len(every) > 1:
            found.append(("All records", [], shared))
        for drawn, settings in zip(self.drawn_from, every, strict=True):
            own = {k: v for k, v in settings.items() if len(every) == 1 or k not in shared}
            found.append((drawn["name"], [drawn["run"]], own))
        return found


@dataclass(frozen=True)
class RenderedHighlight:
    """A highlight as shown: its sentences, the statements it stands on, and its figure."""

    highlight: Highlight
    text: Sequence[str]
    statements: Sequence[Statement]
    figure: Figure | None


@dataclass(frozen=True)
class Section:
    """One paper: its theorems and lemmas, then its figures."""

    paper: Paper
    checks: Sequence[Statement]
    figures: Sequence[Figure]
    waiting: Sequence[ReportEntry]  # figures without a drawing
    counts: Counts
    highlights: Sequence[RenderedHighlight]

    @property
    def groups(self) -> list[tuple[str, list[Statement], list[Figure]]]:
        """Heading, checks and figures: the paper's statements, then those of this project."""
        groups = [
            ("Theorems, lemmas and other statements", [s for s in self.checks if not s.is_own], []),
            ("Figures", [], [f for f in self.figures if not f.entry.is_own]),
            (
                "Statements of this project",
                [s for s in self.checks if s.is_own],
                [f for f in self.figures if f.entry.is_own],
            ),
        ]
        return [group for group in groups if group[1] or group[2]]

    @property
    def statements(self) -> list[Statement]:
        return [*self.checks, *(s for figure in self.figures for s in figure.statements)]

    @property
    def remarked(self) -> list[Statement]:
        """The paper's own statements that are decided and have a remark."""
        return [s for s in self.statements if s.remarks and not s.is_own and s.verdict in ("holds", "fails")]


def write_report(folder: Path, content: ReportContent) -> Path:
    """Write `folder`/SCALE.html with its files beside it, and index.html; return the page's path."""
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    sections = _sections(folder, content)
    records = {
        id(e): drawings.record(e, folder, content.name) for e in content.entries if e.document is not None
    }
    html = _template().render(
        **_template_variables(content, sections), record=lambda entry: records[id(entry)]
    )
    path = folder / f"{content.name}.html"
    atomic.write_bytes(path, html.encode())
    pages.link(folder)
    pictures = [figure.picture for section in sections for figure in section.figures]
    shown = {link for picture in pictures for link in picture.files.values()}
    drawings.remove_others(folder, content.name, shown | set(records.values()))
    return path


def summary(content: ReportContent) -> str:
    """Return the verdicts in one sentence."""
    return _sentence(count(statements(content), content.entries))


def _sections(folder: Path, content: ReportContent) -> list[Section]:
    known = {paper.id: paper for paper in content.papers}
    ids = dict.fromkeys([*known, *(entry.paper for entry in content.entries)])
    found = [_section(folder, known.get(id, Paper(id, id)), content) for id in ids]
    return [section for section in found if section.counts.entries]


def _section(folder: Path, paper: Paper, content: ReportContent) -> Section:
    entries = sorted((entry for entry in content.entries if entry.paper == paper.id), key=_natural)
    of_entry = {id(entry): list(statements(ReportContent(content.scale, [], [entry]))) for entry in entries}
    every = [statement for entry in entries for statement in of_entry[id(entry)]]
    figures = [e for e in entries if e.group == "figure"]
    drawn = [_figure(folder, e, of_entry[id(e)], content.name) for e in figures if e.document is not None]
    checks = sorted(
        (s for e in entries if e.group != "figure" for s in of_entry[id(e)]), key=lambda s: s.rank
    )
    waiting = [entry for entry in figures if entry.document is None]
    highlights = [
        shown for highlight in paper.highlights for shown in _highlight(highlight, entries, checks, drawn)
    ]
    return Section(paper, checks, drawn, waiting, count(every, entries), highlights)


def _natural(entry: ReportEntry) -> list[str | int]:
    """Return a key that sorts Figure 2 before Figure 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry.id)]


def _figure(folder: Path, entry: ReportEntry, found: Sequence[Statement], page: str) -> Figure:
    document, shown = entry.document or {}, drawings.picture(entry, folder, page)
    caption, drawn_from = str(document.get("caption", "")), document.get("drawn_from") or []
    return Figure(entry, anchor(entry), shown, caption, drawn_from, found)


def _highlight(
    highlight: Highlight,
    entries: Sequence[ReportEntry],
    checks: Sequence[Statement],
    figures: Sequence[Figure],
) -> Iterator[RenderedHighlight]:
    """Yield the highlight if its figure or all its statements are here, and their verdicts are those it
    names."""
    text = highlights.sentences(highlight.text, {entry.id: entry for entry in entries})
    by_name = {statement.entry.id: statement for statement in checks if statement.verdict}
    on = [by_name[name] for name in highlight.statements if name in by_name]
    figure = next((figure for figure in figures if figure.entry.id == highlight.figure), None)
    agrees = all(
        by_name[name].verdict == verdict for name, verdict in highlight.statements.items() if name in by_name
    )
    if text and agrees and (figure or len(on) == len(highlight.statements)):
        yield RenderedHighlight(highlight, text, on, figure)


def _template_variables(content: ReportContent, sections: Sequence[Section]) -> dict[str, Any]:
    """Return the variables of the template."""
    every = [s for section in sections for s in section.statements]
    counts = count(every, content.entries)
    stale = sum(e.state == "stale" for e in content.entries)
    live = any(e.state in ("waiting", "running") and not e.reason for e in content.entries)
    return {
        "content": content,
        "sections": sections,
        "counts": counts,
        "sources": _sources(sections),
        "sentence": _sentence(counts),
        "decided": counts.holds + counts.fails,
        "terms": [(s.paper, s.paper.terms) for s in sections if s.paper.terms],
        "unexpected": [s for s in every if s.verdict and not s.as_expected],
        "troubled": [e for e in content.entries if e.state == "failed"],
        "live": live,
        "stale": stale,
        "made": _provenances(content.entries),
        "css": _file("style.css"),
        "js": _file("page.js"),
        "js_digest": _digest(_file("page.js")),
        "css_digest": _digest(_file("style.css")),
    }


def _sources(sections: Sequence[Section]) -> str:
    """`4 papers and 1 study of this project`: where the statements are from."""
    measured = [section for section in sections if section.counts.statements]
    studies = sum(all(s.is_own for s in section.statements) for section in measured)
    named = ((len(measured) - studies, "paper", "papers"), (studies, "study", "studies"))
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in named if count]
    return " and ".join(parts) + (" of this project" if studies else "")


def _sentence(counts: Counts) -> str:
    """Return the verdicts: `31 hold, 3 are known false and 17 are undecided.`"""
    if not counts.statements:
        return ""
    fails = counts.fails - counts.fails_unexpected
    parts = [
        f"{count} {one if count == 1 else many}"
        for count, one, many in (
            (counts.holds, "holds", "hold"),
            (fails, "is known false", "are known false"),
            (counts.fails_unexpected, "fails", "fail"),
            (counts.undecided, "is undecided", "are undecided"),
        )
        if count
    ]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"{listed}; {counts.unexpected} other than expected." if counts.unexpected else f"{listed}."


def _provenances(entries: Sequence[ReportEntry]) -> list[tuple[dict[str, str], list[ReportEntry]]]:
    """Return the records by the code, versions and hardware they were made with, most first."""
    groups: dict[str, tuple[dict[str, str], list[ReportEntry]]] = {}
    for entry in entries:
        if entry.document is not None:
            environment = _environment(entry.record.get("provenance") or {})
            groups.setdefault(repr(environment), (environment, []))[1].append(entry)
    return sorted(groups.values(), key=lambda group: -len(group[1]))


def _environment(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Provenance as words; {} where there is none."""
    if not provenance:
        return {}
    git, hardware = provenance.get("git"), provenance.get("hardware") or {}
    dirty = " with uncommitted changes" if git and git.get("dirty") else ""
    machine = [str(hardware.get("cpu") or "unknown processor"), str(hardware.get("gpu") or "")]
    versions = (provenance.get("versions") or {}).items()
    return {
        "code": f"commit {str(git.get('commit'))[:12]}{dirty}" if git else "not under version control",
        "versions": ", ".join(f"{name} {version}" for name, version in versions if version),
        "hardware": ", ".join(part for part in machine if part),
    }


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "brief": typeset, "json": documents.dumps, "web": _web_link, "math": mathematics.prose,
        "mathml": mathematics.mathml, "words": mathematics.words, "formulas": mathematics.formulas,
        "used_terms": _used_terms, "first_sentence": first_sentence,
    }  # fmt: skip
    environment.globals |= {"anchor": anchor, "glyph": {"holds": "✓", "fails": "✗", "undecided": "?"}}
    return environment.get_template("page.html.jinja")


def _used_terms(paper: Paper, claim: str) -> list[tuple[int, Term]]:
    """Return the paper's terms that a claim has, with their places; a sentence may begin with one."""
    return [
        (i, term)
        for i, term in enumerate(paper.terms)
        if any(re.search(rf"(?<![\w(]){re.escape(name)}(?!\w)", claim) for name in _forms(term.name))
    ]


def _forms(name: str) -> tuple[str, str]:
    return name, name[:1].upper() + name[1:]


def _web_link(link: str) -> str:
    """`link` if it leads to the web; a config cannot bring in a script."""
    return link if link.startswith(("https://", "http://")) else ""


@functools.cache
def _file(name: str) -> Any:
    from markupsafe import Markup

    return Markup((_HERE / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
