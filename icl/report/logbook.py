"""The claims as a logbook of Trackio's: a page for each paper, a cell for each claim and each picture.

The format is that of trackio.logbook in Trackio 0.43 (its schema version 2): Markdown files below
.trackio/logbook/pages, in which a comment with JSON begins each cell. Trackio adds its viewer when it opens
them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from icl.report.claim_pages import ClaimPage, verdict_of
from icl.report.mathematics import words
from icl.runs import atomic

FOLDER = ".trackio"


def write_logbook(folder: Path, pages: Sequence[ClaimPage]) -> None:
    """Write FOLDER/.trackio/logbook with the claims of `pages`."""
    papers = sorted({page.statement.entry.paper for page in pages})
    listed = [f"| [{paper}](#/{paper}) |" for paper in papers]
    index = ["# icl: claims of papers and their verdicts", "", "## Pages", "", "| Page |", "| --- |", *listed]
    _write(folder / FOLDER / "logbook" / "pages" / "index.md", index)
    for paper in papers:
        cells = [f"# {paper}"]
        of_paper = [page for page in pages if page.statement.entry.paper == paper]
        for page, previous in zip(of_paper, [None, *of_paper], strict=False):
            if previous is None or page.picture != previous.picture:
                cells += _figure(folder, page)
            cells += _cell(page, "markdown", page.name, "\n\n".join(_markdown(page)))
        _write(folder / FOLDER / "logbook" / "pages" / paper / "page.md", cells)


def _markdown(page: ClaimPage) -> Iterator[str]:
    statement, entry = page.statement, page.statement.entry
    yield f"{entry.reference} · {entry.id}{page.settings and f' at {page.settings}'}"
    if statement.is_own:
        yield "A statement of this project."
    if entry.quote:
        yield f"> {words(entry.quote)}"
    yield f"**What is tested.** {statement.claim}"
    yield statement.sentence or f"Measured: {statement.inequality}"
    if statement.control is not None:
        control = statement.control_sentence
        yield control or f"Control: {statement.control.description}: {statement.control.measured}"
    if entry.command:
        yield f"````bash\n{entry.command}\n````"


def _figure(folder: Path, page: ClaimPage) -> list[str]:
    """Return the cell of a figure's picture, which is in the page itself."""
    picture = page.picture.files.get("png")
    if picture is None:
        return []
    encoded = base64.b64encode((folder / picture).read_bytes()).decode()
    html = f'<img src="data:image/png;base64,{encoded}" alt="" style="max-width:100%;height:auto;" />'
    return _cell(page, "figure", f"{page.name} picture", f"````html\n{html}\n````")


def _cell(page: ClaimPage, kind: str, name: str, body: str) -> list[str]:
    id = f"cell_{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    title = (
        f"{page.statement.title}: {verdict_of(page.statement)}"
        if kind == "markdown"
        else page.statement.title
    )
    about = {"type": kind, "id": id, "title": title}
    if date := page.statement.entry.record.get("date"):
        about["created_at"] = str(date).replace(" UTC", "+00:00").replace(" ", "T")
    return ["", "---", "<!-- trackio-cell", json.dumps(about), "-->", body]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, ("\n".join(lines) + "\n").encode())
