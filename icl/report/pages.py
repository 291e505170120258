"""The pages of one folder: each links to the others, and index.html is the one that has decided most.

So that a page of one scale never takes the place of a fuller one of another.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from icl.runs import atomic

INDEX = "index.html"
_HEAD = re.compile(r'<meta name="icl-page" content="([^"]*)" data-decided="(\d+)">')
_NAV = re.compile(r"(<!--pages-->).*?(<!--/pages-->)", re.DOTALL)


def link(folder: Path) -> None:
    """Brings every page's links to the others up to date, and index.html."""
    found = {
        path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html")) if path.name != INDEX
    }
    heads = {path: head for path, html in found.items() if (head := _HEAD.search(html))}
    fullest, content = -1, ""
    for path, head in heads.items():
        others = " ".join(_link(other.name, title[1], other == path) for other, title in heads.items())
        nav = others if len(heads) > 1 else ""
        html = _NAV.sub(lambda match: f"{match[1]}{nav}{match[2]}", found[path], count=1)  # noqa: B023
        if html != found[path]:
            atomic.write_bytes(path, html.encode())
        if int(head[2]) > fullest:
            fullest, content = int(head[2]), html
    if content:
        atomic.write_bytes(folder / INDEX, content.encode())


def _link(name: str, title: str, is_here: bool) -> str:
    return f'<a href="{escape(name)}"{" aria-current=page" if is_here else ""}>{escape(title)}</a>'
