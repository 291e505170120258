"""The page: a book as one folder of static files that opens from disk, without a server or a network."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.report import diagram, drawings, values
from icl.report.book import Book, Entry, Paper
from icl.report.statements import Counts, Statement, anchor, counted, statements
from icl.runs import atomic, documents

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Figure:
    """A figure as shown: links into the folder, its caption, and the runs it is drawn from."""

    entry: Entry
    anchor: str
    links: Mapping[str, str]
    size: tuple[int, int] | None
    caption: str
    drawn_from: Sequence[Mapping[str, Any]]
    statements: Sequence[Statement]

    @property
    def alt(self) -> str:
        """What the picture shows, in words, and what came of its claims."""
        shown = f"{self.entry.reference or self.entry.id}. {self.caption}".strip()
        return f"{shown} {_sentence(counted(self.statements, []))}".strip()


@dataclass(frozen=True)
class Section:
    """One paper: its theorems and lemmas, then its figures."""

    paper: Paper
    checks: Sequence[Statement]
    figures: Sequence[Figure]
    waiting: Sequence[Entry]  # figures without a drawing
    counts: Counts


def write_report(folder: Path, book: Book) -> Path:
    """Writes `folder`/index.html and the figures' copies beside it; the path of the page."""
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    sections = _sections(folder, book)
    html = _template().render(**_told(book, sections))
    path = folder / "index.html"
    atomic.write_bytes(path, html.encode())
    drawings.remove_others(folder, [figure.links for section in sections for figure in section.figures])
    return path


def summary(book: Book) -> str:
    """The verdicts in one sentence."""
    return _sentence(counted(statements(book), book.entries))


def _sections(folder: Path, book: Book) -> list[Section]:
    known = {paper.id: paper for paper in book.papers}
    ids = dict.fromkeys([*known, *(entry.paper for entry in book.entries)])
    found = [_section(folder, known.get(id, Paper(id, id)), book) for id in ids]
    return [section for section in found if section.counts.entries]


def _section(folder: Path, paper: Paper, book: Book) -> Section:
    entries = [entry for entry in book.entries if entry.paper == paper.id]
    of_entry = {id(entry): list(statements(Book(book.scale, [], [entry]))) for entry in entries}
    every = [statement for entry in entries for statement in of_entry[id(entry)]]
    figures = [e for e in entries if e.group == "figure"]
    drawn = [_figure(folder, e, of_entry[id(e)]) for e in figures if e.document is not None]
    checks = [s for e in entries if e.group != "figure" for s in of_entry[id(e)]]
    waiting = [entry for entry in figures if entry.document is None]
    return Section(paper, checks, drawn, waiting, counted(every, entries))


def _figure(folder: Path, entry: Entry, found: Sequence[Statement]) -> Figure:
    document = entry.document or {}
    files = document.get("files") or {}
    size = drawings.png_size(Path(files["png"])) if "png" in files else None
    links = drawings.copies(entry, folder)
    caption, drawn_from = str(document.get("caption", "")), document.get("drawn_from") or []
    return Figure(entry, anchor(entry), links, size, caption, drawn_from, found)


def _told(book: Book, sections: Sequence[Section]) -> dict[str, Any]:
    """What the template is given."""
    every = [s for section in sections for s in [*section.checks, *_claims(section)]]
    counts = counted(every, book.entries)
    untrue = [s for s in every if s.verdict == "fails" and s.as_expected]
    untrue.sort(key=lambda s: s.entry.group == "figure")  # theorems first
    stale = sum(e.state == "stale" for e in book.entries)
    live = any(e.state in ("waiting", "running") and not e.reason for e in book.entries)
    return {
        "book": book,
        "sections": sections,
        "counts": counts,
        "measured_papers": sum(section.counts.statements > 0 for section in sections),
        "sentence": _sentence(counts),
        "untrue": untrue,
        "remarked": [s for s in every if s.remarks and s not in untrue],
        "unexpected": [s for s in every if s.verdict and not s.as_expected],
        "troubled": [e for e in book.entries if e.state == "failed"],
        "live": live,
        "stale": stale,
        "made": _made(book.entries),
        "css": _file("style.css"),
        "js": _file("page.js"),
        "js_digest": _digest(_file("page.js")),
        "css_digest": _digest(_file("style.css")),
    }


def _claims(section: Section) -> Iterator[Statement]:
    for figure in section.figures:
        yield from figure.statements


def _sentence(counts: Counts) -> str:
    """`31 hold, 3 fail and 17 are undecided, all as expected.`"""
    if not counts.statements:
        return ""
    parts = [
        f"{count} {one if count == 1 else many}"
        for count, one, many in (
            (counts.holds, "holds", "hold"),
            (counts.fails, "fails", "fail"),
            (counts.undecided, "is undecided", "are undecided"),
        )
        if count
    ]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    if counts.unexpected:
        return f"{listed}; {counts.unexpected} other than expected."
    return f"{listed}, {'all ' if counts.statements > 1 else ''}as expected."


def _made(entries: Sequence[Entry]) -> list[tuple[dict[str, str], list[Entry]]]:
    """The records by the code, versions and hardware they were made with, most first."""
    groups: dict[str, tuple[dict[str, str], list[Entry]]] = {}
    for entry in entries:
        if entry.document is not None:
            told = _environment(entry.record.get("provenance") or {})
            groups.setdefault(repr(told), (told, []))[1].append(entry)
    return sorted(groups.values(), key=lambda group: -len(group[1]))


def _environment(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Provenance as words; {} where there is none."""
    if not provenance:
        return {}
    git, hardware = provenance.get("git"), provenance.get("hardware") or {}
    dirty = " with uncommitted changes" if git and git.get("dirty") else ""
    memory = hardware.get("memory_bytes")
    machine = [
        str(hardware.get("cpu") or "unknown processor"),
        f"{hardware['cores']} cores" if hardware.get("cores") else "",
        f"{memory / 2**30:.0f} GiB" if memory else "",
        str(hardware.get("gpu") or ""),
    ]
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
    environment.filters |= {"brief": values.brief, "json": documents.dumps, "web": _web_link}
    environment.globals |= {"anchor": anchor, "diagram": _drawn, "diagram_legend": diagram.LEGEND}
    return environment.get_template("page.html.jinja")


def _drawn(account: Mapping[str, Any], name: str) -> Any:
    from markupsafe import Markup

    return Markup(diagram.svg(account, name))


def _web_link(link: str) -> str:
    """`link` if it leads to the web; a config cannot bring in a script."""
    return link if link.startswith(("https://", "http://")) else ""


@functools.cache
def _file(name: str) -> Any:
    from markupsafe import Markup

    return Markup((_HERE / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    """As a Content-Security-Policy names what may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
