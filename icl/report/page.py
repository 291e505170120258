"""The page: a content as one folder of static files that opens from disk, without a server or a network."""

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from icl.report import highlights, templates
from icl.report.entries import Paper, ReportContent, ReportEntry, paper_of
from icl.report.statements import Statement, anchor, count, sentence, statements, statements_of
from icl.runs import atomic


@dataclass(frozen=True)
class Figure:
    """A figure as shown: its pictures and its claims."""

    entry: ReportEntry
    anchor: str
    files: Mapping[str, str]  # links by extension
    size: tuple[int, int] | None  # of the PNG, if it is there
    statements: Sequence[Statement]

    @property
    def sentence(self) -> str:
        return sentence(self.statements)


@dataclass(frozen=True)
class Found:
    """A highlight as shown: its sentences, the statements it stands on, and its figure."""

    paper: Paper
    highlight: Mapping[str, Any]
    text: Sequence[str]
    statements: Sequence[Statement]
    figure: Figure | None


@dataclass(frozen=True)
class Section:
    """Statements and figures of one paper, or of the reader."""

    paper: Paper
    checks: Sequence[Statement]
    figures: Sequence[Figure]
    idle: Sequence[ReportEntry]  # without a result

    @property
    def statements(self) -> list[Statement]:
        return [*self.checks, *(s for figure in self.figures for s in figure.statements)]

    @property
    def counts(self) -> Counter[str]:
        return count(self.statements, self.idle)

    @property
    def groups(self) -> list[tuple[str, list[Statement], list[Figure]]]:
        """Heading, checks and figures: the paper's statements, then those of this project."""
        own = [s for s in self.checks if s.is_own], [f for f in self.figures if f.entry.is_own]
        groups = [
            ("Theorems, lemmas and other statements", [s for s in self.checks if not s.is_own], []),
            ("Figures", [], [f for f in self.figures if not f.entry.is_own]),
            ("Statements of this project", *own),
        ]
        return [group for group in groups if group[1] or group[2]]


def write_report(folder: Path, content: ReportContent) -> Path:
    """Write `folder`/SCALE.html, and the same as index.html; return the page's path. It links to pictures and
    records where they are."""
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    known = {paper["id"]: paper for paper in content.papers}
    sections = []
    for name in dict.fromkeys([*known, *(entry.paper for entry in content.entries)]):
        entries = sorted((entry for entry in content.entries if entry.paper == name), key=_natural)
        if entries:
            sections.append(_section(folder, known.get(name) or paper_of(name, name), entries))
    html = _html(folder, content, sections, _section(folder, paper_of("", ""), content.mine))
    path = folder / f"{content.name}.html"
    for place in (path, folder / "index.html"):
        atomic.write_bytes(place, html.encode())
    return path


def summary(content: ReportContent) -> str:
    """Return the verdicts in a sentence, those of the reader's own in another, and what has no result."""
    mine = sentence(statements(content.mine))
    missing = sum(entry.document is None for entry in content.entries)
    rest = f"{missing} of {len(content.entries)} checks and figures have no result." if missing else ""
    told = [sentence(statements(content.entries)), f"Mine: {mine}" if mine else "", rest]
    return " ".join(filter(None, told))


def _section(folder: Path, paper: Paper, entries: Sequence[ReportEntry]) -> Section:
    done = [entry for entry in entries if entry.document is not None]
    checks = [s for entry in done if entry.group == "check" for s in statements_of(entry)]
    figures = [_figure(folder, entry) for entry in done if entry.group == "figure"]
    idle = [entry for entry in entries if entry.document is None]
    return Section(paper, sorted(checks, key=lambda s: s.rank) if paper["id"] else checks, figures, idle)


def _figure(folder: Path, entry: ReportEntry) -> Figure:
    given = ((entry.document or {}).get("files") or {}).items()
    paths = {extension: path for extension, name in given if (path := Path(name)).is_file()}
    links = {extension: _link(folder, path) for extension, path in paths.items()}
    return Figure(entry, anchor(entry), links, png_size(paths.get("png")), statements_of(entry))


def _link(folder: Path, path: str | Path) -> str:
    """Return the way from a page in `folder` to a file, so that the outputs folder may be moved."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def png_size(path: Path | None) -> tuple[int, int] | None:
    """Return width and height, from the file's header."""
    from PIL import Image

    try:
        with Image.open(path or "") as image:
            return image.size
    except OSError:
        return None


def _natural(entry: ReportEntry) -> list[str | int]:
    """Return a key that sorts Figure 2 before Figure 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry.id)]


def _found(section: Section) -> Iterator[Found]:
    """Yield each highlight whose figure or statements are here, if their verdicts are those that it names."""
    entries = {s.entry.id: s.entry for s in section.checks} | {f.entry.id: f.entry for f in section.figures}
    by_name = {statement.entry.id: statement for statement in section.checks}
    for highlight in section.paper["highlights"]:
        text = highlights.sentences(highlight["text"], entries)
        wanted = highlight.get("statements", {})  # checks, and the verdicts that the text tells of
        on = [by_name[name] for name in wanted if name in by_name]
        figure = next((one for one in section.figures if one.entry.id == highlight.get("figure")), None)
        agrees = all(s.verdict == wanted[s.entry.id] for s in on)
        if text and agrees and (figure or (on and len(on) == len(wanted))):
            yield Found(section.paper, highlight, text, on, figure)


def _html(folder: Path, content: ReportContent, sections: Sequence[Section], mine: Section) -> str:
    from markupsafe import Markup

    every = [s for section in sections for s in section.statements]
    css, js = ((templates.HERE / name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    return templates.environment().get_template("page.html.jinja").render(
        content=content,
        sections=sections,
        mine=mine,
        found=[found for section in sections for found in _found(section)],
        counts=count(every, content.entries),
        total=len(every),
        papers=sum(bool(section.statements) for section in sections),
        own=sum(s.is_own for s in every),
        sentence=sentence,
        said=sentence(every),
        decided=sum(s.verdict != "undecided" for s in every),
        unexpected=[s for s in [*mine.statements, *every] if not s.as_expected],
        troubled=[entry for entry in content.entries if entry.state == "failed"],
        stale=sum(entry.state == "stale" for entry in content.entries),
        made=_environments([*content.entries, *content.mine]),
        terms_of={section.paper["id"]: section.paper["terms"] for section in sections},
        used_terms=_used_terms,
        link=partial(_link, folder),
        css=Markup(css),
        js=Markup(js),
        digests=[_digest(css), _digest(js)],
    )  # fmt: skip


def _environments(entries: Sequence[ReportEntry]) -> list[tuple[str, list[ReportEntry]]]:
    """Return the records by the code, versions and hardware they were made with, most first."""
    groups: dict[str, list[ReportEntry]] = {}
    for entry in entries:
        if entry.document is not None:
            groups.setdefault(_environment(entry.record.get("provenance") or {}), []).append(entry)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _environment(provenance: Mapping[str, Any]) -> str:
    if not provenance:
        return "unknown: no record holds these results"
    git, hardware = provenance.get("git"), provenance.get("hardware") or {}
    dirty = " with uncommitted changes" if git and git.get("dirty") else ""
    code = f"commit {str(git.get('commit'))[:12]}{dirty}" if git else "not under version control"
    versions = [
        f"{name} {version}" for name, version in (provenance.get("versions") or {}).items() if version
    ]
    machine = [
        str(part) for part in (hardware.get("cpu") or "unknown processor", hardware.get("gpu")) if part
    ]
    return ", ".join([code, *versions, *machine])


def _used_terms(terms: Sequence[Mapping[str, str]], claim: str) -> list[Mapping[str, str]]:
    """Return the terms that a claim has; a sentence may begin with one."""

    def pattern(name: str) -> str:
        first = "".join(re.escape(letter) for letter in {name[0], name[0].upper()})
        return rf"(?<![\w(])[{first}]{re.escape(name[1:])}(?!\w)"

    return [term for term in terms if re.search(pattern(term["name"]), claim)]


def _digest(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
