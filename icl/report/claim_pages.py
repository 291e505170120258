"""One page for each statement of a report: the paper's line, verdict, picture, numbers, control, command.

Statements that were measured at other settings than the report's have pages too.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from icl.report import drawings, ruler
from icl.report.content import ReportContent, ReportEntry
from icl.report.mathematics import formulas, prose
from icl.report.statements import Statement, statements
from icl.runs import atomic

FOLDER = "claims"
STYLE = "style.css"
_PLACE = "<!--/pages-->"  # in the report, behind the links to its other scales
_LINKED = f' <a href="{FOLDER}/index.html">A page for each claim</a>'
_OWN_STYLE = """
main { max-width: 56rem; }
blockquote { margin: 0.6rem 0; padding-left: 1rem; border-left: 3px solid var(--line); }
nav { padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
td, th { padding: 0.3rem 1.1rem 0.3rem 0; border-top: 1px solid var(--line); font-weight: 400; }
th, td code { white-space: nowrap; }
td { overflow-wrap: break-word; }
.pictures { margin: 0.8rem 0; }
@media screen and (max-width: 50rem) { .whole { display: contents; } }
"""


@dataclass(frozen=True)
class OtherSettings:
    """An entry with a result that the report does not show, and its settings that are others."""

    entry: ReportEntry
    settings: str  # "check.dim=3"


@dataclass(frozen=True)
class ClaimPage:
    """A statement with its files: links from the folder above, and the settings that are not the report's."""

    name: str
    statement: Statement
    picture: drawings.Picture
    record: str
    settings: str = ""


def claim_pages(
    folder: Path, content: ReportContent, others: Sequence[OtherSettings] = ()
) -> list[ClaimPage]:
    """Return the page of each statement with a verdict, with pictures and records in FOLDER."""
    pages = [page for entry in content.entries for page in _pages(folder, content, entry)]
    for other in others:
        pages += _pages(folder, content, other.entry, other.settings)
    return pages


def write_claim_pages(folder: Path, content: ReportContent, pages: Sequence[ClaimPage]) -> None:
    """Write FOLDER/claims/NAME.html for each statement, and their list."""
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.html"):
        old.unlink()
    for page in pages:
        atomic.write_bytes(target / f"{page.name}.html", _claim_page(page, content.name).encode())
    atomic.write_bytes(target / "index.html", _list(pages, content.name).encode())
    style = (Path(__file__).parent / STYLE).read_text(encoding="utf-8")
    atomic.write_bytes(target / STYLE, (style + _OWN_STYLE).encode())
    for report in (folder / f"{content.name}.html", folder / "index.html"):
        text = report.read_text(encoding="utf-8")
        if _LINKED not in text:
            atomic.write_bytes(report, text.replace(_PLACE, _PLACE + _LINKED, 1).encode())


def _pages(folder: Path, content: ReportContent, entry: ReportEntry, settings: str = "") -> list[ClaimPage]:
    """Return the pages of one entry; those at other settings have the fingerprint in their names."""
    found = [s for s in statements(replace(content, entries=[entry])) if s.verdict]
    if not found:
        return []
    fingerprint = str(entry.record.get("fingerprint")) if settings else ""
    place = fingerprint or content.name
    picture = drawings.picture(entry, folder, place)
    record = drawings.record(entry, folder, place)
    suffix = f"-{fingerprint}" if settings else ""
    return [ClaimPage(s.anchor + suffix, s, picture, record, settings) for s in found]


def _claim_page(page: ClaimPage, report: str) -> str:
    """Return the page of one statement, which links to the report REPORT.html above it."""
    statement, entry = page.statement, page.statement.entry
    verdict = verdict_of(statement)
    expected = "" if statement.as_expected else f" (expected: {_text(statement.expected)})"
    where = f'<a href="../{report}.html#{_text(statement.anchor)}">in the report</a>'
    if page.settings:
        where = f"at <code>{_text(page.settings)}</code>, not in the report"
    body = [
        f"<h1>{formulas(statement.title)}</h1>",
        f"<p>{_text(entry.reference)} · <code>{_text(entry.id)}</code> · {where}</p>",
        *_words(statement),
        f"<p><b>What is tested.</b> {formulas(statement.claim)}</p>",
        f'<p><span class="pill v-{_text(statement.verdict)}">{_text(verdict)}</span>{expected}</p>',
    ]
    if entry.state == "stale":
        body.append(f'<p class="odd">Stale: {_text(entry.reason)}</p>')
    if statement.sentence:
        body.append(f"<p>{formulas(statement.sentence)}</p>")
    if statement.marks:
        body.append(ruler.svg(statement.marks, statement.verdict))
    body += _pictures(page)
    if statement.numbers:
        body.append('<h2>Numbers</h2><div class="scroll"><table><tr><th>number<th>value<th>kind<th>route')
        for number in statement.numbers:
            told = formulas(number.meaning) if number.meaning else _text(number.name)
            route = formulas(number.route.removeprefix("second route: "))
            body.append(f"<tr><td>{told}<td>{formulas(number.value)}<td>{_text(number.kind)}<td>{route}")
            rows = ((_text(key), formulas(value)) for key, value in number.entries)
            body += [f"<tr><td>\u2003{key}<td>{value}<td><td>" for key, value in rows]
        body.append("</table></div>")
    elif statement.measured is not None:
        body.append(f"<p>Measured: {_text(statement.inequality)}</p>")
    if statement.bound_text or statement.source:
        parts = filter(None, (_text(statement.bound_text), formulas(statement.source)))
        body.append(f"<p>Bound: {', '.join(parts)}</p>")
    if (control := statement.control) is not None:
        told = statement.control_sentence or f"{control.description}: {control.measured}"
        body.append(f"<h2>Control</h2><p>{formulas(told)}</p>")
    for heading, texts in (("On the paper's text", statement.remarks), ("Notes", statement.notes)):
        if texts:
            items = "".join(f"<li>{formulas(text)}" for text in texts)
            body.append(f"<h2>{heading}</h2><ul>{items}</ul>")
    if entry.command:
        body.append(f"<h2>Command</h2><pre>{_text(entry.command)}</pre>")
    body.append(f'<p><a href="../{_text(page.record)}">The record as JSON</a></p>')
    return _page(f"{statement.title}: {verdict}", "\n".join(body))


def verdict_of(statement: Statement) -> str:
    """Return the verdict, as `known false` where a statement is expected to fail."""
    return "known false" if statement.verdict == "fails" and statement.as_expected else statement.verdict


def _words(statement: Statement) -> list[str]:
    """Return whose statement it is: the paper's words, or that it is this project's own."""
    quote, found = statement.entry.quote, []
    if statement.is_own:
        found.append("<p>A statement of this project.</p>")
    if quote.startswith('"'):
        found.append(f"<p><b>The paper's words.</b></p><blockquote>{prose(quote)}</blockquote>")
    elif quote:
        found.append(f"<p><b>Source.</b> {formulas(quote)}</p>")
    return found


def _pictures(page: ClaimPage) -> list[str]:
    """Return the panels that a claim names, else the whole picture, in both themes."""
    picture, named = page.picture, [f"panel-{letter}" for letter in page.statement.panels]
    images = [picture.views[name] for name in named if name in picture.views]
    if len(images) < len(named) or not named:
        images = [picture.whole] if picture.whole else []
    if not images:
        return []
    alternative = _text(f"{page.statement.title}: {page.statement.claim}")
    shown = []
    for image in images:
        themes = [(image.light, "only-light"), (image.dark, "only-dark")]
        themes = themes if image.dark else [(image.light, "paper-white")]
        shown += [f'<img class="{theme}" src="../{link}" alt="{alternative}">' for link, theme in themes]
    links = " ".join(
        f'<a href="../{_text(link)}">{_text(extension.upper())}</a>'
        for extension, link in picture.files.items()
        if extension != "json"
    )
    return [
        f'<div class="pictures"><div class="whole">{"".join(shown)}</div></div><p class="small">{links}</p>'
    ]


def _list(pages: Sequence[ClaimPage], report: str) -> str:
    body = [f'<h1>Claims</h1><p><a href="../{report}.html">The report</a></p>']
    own = [page for page in pages if not page.settings]
    others = [page for page in pages if page.settings]
    for heading, listed in (("", own), ("<h2>At other settings</h2>", others)):
        if not listed:
            continue
        settings = "<th>settings" if listed is others else ""
        body.append(f'{heading}<div class="scroll"><table><tr><th>claim<th>paper{settings}<th>verdict')
        for page in listed:
            s = page.statement
            claim = f"<br>{formulas(s.claim)}" if s.entry.group == "figure" else ""
            at = f"<td><code>{_text(page.settings)}</code>" if page.settings else ""
            body.append(
                f'<tr><td><a href="{_text(page.name)}.html">{formulas(s.title)}</a>{claim}'
                f"<td>{_text(s.entry.paper)}{at}"
                f'<td><span class="pill v-{_text(s.verdict)}">{_text(verdict_of(s))}</span>'
            )
        body.append("</table></div>")
    return _page("Claims", "\n".join(body))


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_text(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="stylesheet" href="{STYLE}">'
        f'<nav><a href="index.html">All claims</a></nav><main>{body}</main></html>\n'
    )


def _text(value: str) -> str:
    return html.escape(value)
