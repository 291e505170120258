"""Write numbers from stored records into README.md and docs/: `python scripts/render.py`.

A page is committed in its final form. A comment behind a number names its source, and its format:

    0.1336<!-- ahn/theorem3 measured.risk .4f -->

`*` stands for every key; `min:.4f` and `max:.4f` then show the least or the greatest.
`|.4f` leaves out the sign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
NUMBER = re.compile(r"(?:\*[^*\n]*\*|[-+\d.,e%]*)<!-- (\w+/\w+) (\S+)(?: (\S+))? -->")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if RECORDS not in p.parents)]


def render(page: str) -> str:
    return NUMBER.sub(_number, page)


def records(paper: str) -> dict[str, Any]:
    return json.loads((RECORDS / f"{paper}.json").read_text(encoding="utf-8"))


def _number(mark: re.Match[str]) -> str:
    id, keys, form = mark.groups()
    paper = records(id.partition("/")[0])
    value = _lookup(paper["checks"].get(id) or paper["figures"][id], keys.split("."), f"{id} {keys}")
    return _formatted(value, form or "") + mark[0][mark[0].index("<!--") :]


def _lookup(node: Any, keys: Sequence[str], request: str) -> Any:
    if not keys:
        return node
    if keys[0] == "*":
        parts = node.values() if isinstance(node, Mapping) else node
        return [_lookup(part, keys[1:], request) for part in parts]
    if isinstance(node, list):
        return _lookup(node[int(keys[0])], keys[1:], request)
    for count in range(1, len(keys) + 1):  # a key may contain a point
        name = ".".join(keys[:count])
        for key in (name, name.replace("_", " ")):
            if isinstance(node, Mapping) and key in node:
                return _lookup(node[key], keys[count:], request)
    raise KeyError(f"{request}: no record has {keys[0]}")


def _formatted(value: Any, form: str) -> str:
    if isinstance(value, str):
        return f"*{value}*"
    chosen, colon, rest = form.partition(":")
    if colon:
        return format({"min": min, "max": max}[chosen](value), rest)
    return format(abs(value), form[1:]) if form.startswith("|") else format(value, form)


if __name__ == "__main__":
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if before != (after := render(before)):
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT))
