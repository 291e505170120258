"""Find the marks of a page and replace the numbers and tables that they name."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.pages import measured, papers, reference

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"(?:\*[^*\n]*\*|[-+\d.,e%]*)<!-- (\w+/\w+) (\S+)(?: (\S+))? -->")
TABLE = re.compile(r"^<!-- (\w+)(?: (\S+))? -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def rendered() -> dict[Path, str]:
    """Return the text of every page by path."""
    docs = ROOT / "docs"
    pages = (page for page in docs.rglob("*.md") if docs / "records" not in page.parents)
    written = [ROOT / "README.md", *sorted(pages)]
    generated = {ROOT / "docs" / "reference" / name: text for name, text in reference.pages().items()}
    return {path: render(path.read_text("utf-8")) for path in written if path not in generated} | generated


def render(page: str) -> str:
    return TABLE.sub(_table, NUMBER.sub(_number, page))


def _number(mark: re.Match[str]) -> str:
    id, keys, form = mark.groups()
    comment = mark[0][mark[0].index("<!--") :]
    return papers.formatted(papers.value(id, keys), form or "") + comment


def _table(mark: re.Match[str]) -> str:
    kind, argument = mark.groups()
    makers = papers.TABLES | measured.TABLES
    if kind not in makers:
        raise ValueError(f"{kind}: no such table; there are {', '.join(makers)}")
    text = makers[kind](argument) if argument else makers[kind]()
    return f"{mark[0].splitlines()[0]}\n\n{text.strip()}\n\n<!-- end -->"
