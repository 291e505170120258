"""The catalog of checks, experiments and figures, from the headers of the configs, without Hydra."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl.config.search_path import SCALES, ConfigDirs
from icl.errors import InputError, nearest
from icl.runs import json_records, layout, record

_TARGET = re.compile(r"^\s*_target_: (\S+)$", re.MULTILINE)
_KEY = r"([a-z]\w*): (\S.*?)(?: +#.*)?$"
_AT = re.compile(r"\$\{at:(.*)\}")
_VALUE = re.compile(r"\[[^\]]*\]|[^,\s]+")
_CLAIM = re.compile(r"^    claim(?:: [^=]+)? = (\(\n.*?\n    \)|[^\n]+)$", re.MULTILINE | re.DOTALL)
_NEXT_STATEMENT = re.compile(r"^(?=[^\s)])", re.MULTILINE)  # after a class
_HEADER = re.compile(r"^#\s*(paper|title|origin|reference|formula|quote)\s*:\s*(.+)$")


class Kind(NamedTuple):
    """A kind of thing: its config group, what many of it are called, and the folder of its records."""

    group: str
    plural: str
    records: str


KINDS = (
    Kind("check", "checks", "checks"),
    Kind("experiment", "experiments", "runs"),
    Kind("figure", "figures", "figures"),
)


class CatalogEntry(NamedTuple):
    """An entry of the catalog."""

    id: str
    paper: str
    reference: str
    formula: str = ""  # the claim in LaTeX
    title: str = ""  # "Theorem 1: the best single layer"
    origin: str = ""  # "icl" where the statement is this project's own, else the paper
    quote: str = ""  # the line of the paper's text that it is about


def listing(outputs: Path, configs: ConfigDirs) -> dict[str, list[dict[str, object]]]:
    """Return the document of `icl list`."""
    found = {kind: entries(kind.group, configs) for kind in KINDS}
    return {
        kind.plural: [
            {"id": item.id, "title": item.title, "paper": item.paper, "origin": item.origin}
            | {"reference": item.reference}
            | {"done": has_result(outputs, kind, item.id)}
            for item in items
        ]
        for kind, items in found.items()
    }


def entries(group: str, configs: ConfigDirs) -> list[CatalogEntry]:
    """Return every option of a group, shipped or the user's own, which wins."""
    found = {}
    for folder in configs.folders:
        for path in sorted((folder / group).rglob("*.yaml")):
            name = path.relative_to(folder / group).with_suffix("").as_posix()
            found[name] = _entry(name, path.read_text(encoding="utf-8"))
    return [found[name] for name in sorted(found)]


def entry_of(group: str, id: str, configs: ConfigDirs) -> CatalogEntry:
    """Return one option of a group."""
    return _entry(id, _text(group, id, configs))


def papers(configs: ConfigDirs) -> list[str]:
    """Return the papers that have a check or a figure."""
    return sorted({entry.paper for group in ("check", "figure") for entry in entries(group, configs)})


def validate_papers(only: Sequence[object], configs: ConfigDirs) -> None:
    known = papers(configs)
    for paper in only:
        if paper not in known:
            listed = f" (one of: {', '.join(known)}){nearest(str(paper), known)}"
            raise InputError(f"only={paper}: no such paper{listed}")


def has_result(outputs: Path, kind: Kind, id: str) -> bool:
    """Return whether a finished record of `id` exists, with whatever settings and code."""
    folder = outputs / kind.records / id
    if kind.records == layout.RUNS:
        return any(record.find_done(path, None) is not None for path in _folders(folder))
    scales = SCALES if kind.records == "figures" else ()
    return any(
        json_records.complaint(json_records.read(path), None) is None
        for place in (folder, *(folder / scale for scale in scales))
        for path in place.glob("*.json")
    )


class StoredResult(NamedTuple):
    """Stored results of a check or figure: the scales, and the verdict of each claim."""

    scales: tuple[str, ...]
    verdicts: tuple[str, ...]


def stored_results(outputs: Path, kind: Kind, id: str, configs: ConfigDirs) -> list[StoredResult]:
    """Return the latest results of a check or figure, by the scales that share them."""
    folder, found = outputs / kind.records / id, []
    if kind.records == "figures":
        for scale in SCALES:
            document = _latest(folder / scale)
            if document is not None:
                found.append(StoredResult((scale,), tuple(claim["verdict"] for claim in document["claims"])))
    elif kind.records == "checks" and (document := _latest(folder)) is not None:
        found.append(StoredResult(scales_of(id, document["settings"], configs), (document["verdict"],)))
    return found


def target_of(kind: Kind, id: str, configs: ConfigDirs) -> str:
    """Return the class that a config names."""
    match = _TARGET.search(_text(kind.group, id, configs))
    return match[1] if match else ""


def _latest(folder: Path) -> Any:
    """Return the document of the record that was written last."""
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    records = (json_records.read(path) for path in paths)
    return next(
        (r["document"] for r in records if r is not None and json_records.complaint(r, None) is None), None
    )


def scales_of(id: str, settings: Mapping[str, Any], configs: ConfigDirs) -> tuple[str, ...]:
    """Return the scales at which the config has these settings; none where they are others."""
    text = _text("check", id, configs)
    indent = "  " if re.search(r"^check:$", text, re.MULTILINE) else ""
    lines = re.findall(f"^{indent}{_KEY}", text, re.MULTILINE)
    shipped = {key: _AT.fullmatch(value) or value for key, value in lines if key != "expected"}
    shipped |= {"weights": "null"}

    def at(value: Any, place: int) -> Any:
        return _read(value if isinstance(value, str) else _VALUE.findall(value[1])[place])

    return tuple(
        scale
        for place, scale in enumerate(SCALES)
        if all(settings.get(key) == at(value, place) for key, value in shipped.items())
    )


def _read(text: str) -> Any:
    """Return a scalar or list of a config's line."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(group: str, id: str, configs: ConfigDirs) -> str:
    paths = [folder / group / f"{id}.yaml" for folder in reversed(configs.folders)]
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")


def _folders(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return


def _entry(name: str, text: str) -> CatalogEntry:
    head = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        match = _HEADER.match(line)
        if match:
            head[match[1]] = match[2].strip()
    paper = head.get("paper", name.partition("/")[0])
    title, origin = head.get("title", name), head.get("origin", paper)
    reference, formula, quote = (head.get(key, "") for key in ("reference", "formula", "quote"))
    return CatalogEntry(name, paper, reference, formula, title, origin, quote)


def claim_of(target: str) -> str:
    """Return the claim of a check's class, "" where it is not plain text.

    Its source is neither imported nor parsed as a whole: `icl list` shows fifty in a tenth of a second.
    """
    module, _, name = target.rpartition(".")
    try:
        spec = importlib.util.find_spec(module)
        source = Path((spec and spec.origin) or "").read_text(encoding="utf-8")
    except (ImportError, ValueError, OSError, AttributeError):
        return ""
    found = re.search(rf"^class {name}\b", source, re.MULTILINE)
    rest = source[found.end() :].partition("\n")[2] if found else ""
    claim = _CLAIM.search(_NEXT_STATEMENT.split(rest, maxsplit=1)[0])
    try:
        return str(ast.literal_eval(claim[1])) if claim else ""
    except (ValueError, SyntaxError):
        return ""
