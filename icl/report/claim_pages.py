"""One page for each statement of a report: title, the paper's line, verdict, numbers, control, command."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from icl.report.content import ReportContent
from icl.report.mathematics import formulas
from icl.report.statements import Statement, statements
from icl.runs import atomic

FOLDER = "claims"
_PLACE = "<!--/pages-->"  # in the report, behind the links to its other scales
_LINKED = f' <a href="{FOLDER}/index.html">A page for each claim</a>'
_STYLE = """body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
blockquote{margin:1rem 0;padding-left:1rem;border-left:3px solid #bbb}
code{overflow-wrap:anywhere}.verdict{font-weight:600}
@media(prefers-color-scheme:dark){body{background:#16161a;color:#e6e6ea}a{color:#9db4ff}}"""


def write_claim_pages(folder: Path, content: ReportContent) -> list[Path]:
    """Write FOLDER/claims/ANCHOR.html for each statement with a verdict, and their list; return the paths."""
    found = [statement for statement in statements(content) if statement.verdict]
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.html"):
        old.unlink()
    paths = []
    for statement in found:
        paths.append(target / f"{statement.anchor}.html")
        atomic.write_bytes(paths[-1], claim_page(statement, content.name).encode())
    paths.append(target / "index.html")
    atomic.write_bytes(paths[-1], _list(found, content.name).encode())
    for page in (folder / f"{content.name}.html", folder / "index.html"):
        report = page.read_text(encoding="utf-8")
        if _LINKED not in report:
            atomic.write_bytes(page, report.replace(_PLACE, _PLACE + _LINKED, 1).encode())
    return paths


def claim_page(statement: Statement, report: str) -> str:
    """Return the page of one statement, which links to the report REPORT.html above it."""
    entry, control = statement.entry, statement.control
    verdict = "known false" if statement.verdict == "fails" and statement.as_expected else statement.verdict
    expected = "" if statement.as_expected else f" (expected: {_text(statement.expected)})"
    body = [
        f"<h1>{_text(statement.title)}</h1>",
        f'<p>{_text(entry.reference)} · <code>{_text(entry.id)}</code> · <a href="../{report}.html#'
        f'{_text(statement.anchor)}">in the report</a></p>',
    ]
    if entry.quote:
        body.append(f"<p><b>The paper's words.</b></p><blockquote>{formulas(entry.quote)}</blockquote>")
    body += [
        f"<p><b>What is tested.</b> {formulas(statement.claim)}</p>",
        f'<p class="verdict v-{_text(statement.verdict)}">{_text(verdict)}{expected}</p>',
    ]
    if statement.sentence:
        body.append(f"<p>{formulas(statement.sentence)}</p>")
    if statement.numbers:
        body.append("<h2>Numbers</h2><table><tr><th>number<th>value<th>kind")
        for number in statement.numbers:
            told = _text(number.meaning or number.name)
            body.append(f"<tr><td>{told}<td>{_text(number.value)}<td>{_text(number.kind)}")
            body += [f"<tr><td>\u2003{_text(key)}<td>{_text(value)}<td>" for key, value in number.entries]
        body.append("</table>")
    elif statement.measured is not None:
        body.append(f"<p>Measured: {_text(statement.inequality)}</p>")
    if statement.bound_text or statement.source:
        body.append(f"<p>Bound: {_text(statement.bound_text)} {formulas(statement.source)}</p>")
    if control is not None:
        told = statement.control_sentence or f"{control.description}: {control.measured}"
        body.append(f"<h2>Control</h2><p>{formulas(told)}</p>")
    for heading, texts in (("On the paper's text", statement.remarks), ("Notes", statement.notes)):
        if texts:
            items = "".join(f"<li>{formulas(text)}" for text in texts)
            body.append(f"<h2>{heading}</h2><ul>{items}</ul>")
    body.append(f"<h2>Command</h2><p><code>{_text(entry.command)}</code></p>")
    return _page(f"{statement.title}: {verdict}", "\n".join(body))


def _list(found: Sequence[Statement], report: str) -> str:
    rows = [
        f'<tr><td><a href="{_text(s.anchor)}.html">{_text(s.title)}</a><td>{_text(s.entry.paper)}'
        f"<td>{_text(s.verdict)}"
        for s in found
    ]
    head = f'<h1>Claims</h1><p><a href="../{report}.html">The report</a></p>'
    return _page("Claims", f"{head}<table><tr><th>claim<th>paper<th>verdict{''.join(rows)}</table>")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_text(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f'<nav><a href="index.html">all claims</a></nav><main>{body}</main></html>\n'
    )


def _text(value: str) -> str:
    return html.escape(value)
