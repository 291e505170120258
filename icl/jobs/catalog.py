"""What there is, from the headers of the configs, and whether any result of it is here: without Hydra."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from icl.config.places import SCALES, Configs
from icl.errors import InputError, nearest
from icl.runs import documents, json_records, layout, record

_HEADER = re.compile(r"^#\s*(paper|reference|formula)\s*:\s*(.+)$")


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


class Entry(NamedTuple):
    """One thing that there is."""

    id: str
    paper: str
    reference: str
    formula: str = ""  # the claim in LaTeX


def listing(outputs: Path, configs: Configs) -> dict[str, list[dict[str, object]]]:
    """The document of `icl list`."""
    found = {kind: entries(kind.group, configs) for kind in KINDS}
    return {
        kind.plural: [
            {"id": item.id, "paper": item.paper, "reference": item.reference}
            | {"done": has_result(outputs, kind, item.id)}
            for item in items
        ]
        for kind, items in found.items()
    }


def entries(group: str, configs: Configs) -> list[Entry]:
    """Every option of a group, shipped or the user's own, which wins."""
    found = {}
    for folder in configs.folders:
        for path in sorted((folder / group).rglob("*.yaml")):
            name = path.relative_to(folder / group).with_suffix("").as_posix()
            found[name] = _entry(name, path)
    return [found[name] for name in sorted(found)]


def papers(configs: Configs) -> list[str]:
    """Those that have a check or a figure."""
    return sorted({entry.paper for group in ("check", "figure") for entry in entries(group, configs)})


def insist_on_papers(only: Sequence[object], configs: Configs) -> None:
    known = papers(configs)
    for paper in only:
        if paper not in known:
            listed = f"{nearest(str(paper), known)} (one of: {', '.join(known)})"
            raise InputError(f"only={paper}: no such paper{listed}")


def has_result(outputs: Path, kind: Kind, id: str) -> bool:
    """Whether a finished record of `id` is here, with whatever settings and code."""
    folder = outputs / kind.records / id
    if kind.records == layout.RUNS:
        return any(record.find_done(path, None) is not None for path in _folders(folder))
    scales = SCALES if kind.records == "figures" else ()
    return any(
        json_records.complaint(documents.read_record(path), None) is None
        for place in (folder, *(folder / scale for scale in scales))
        for path in place.glob("*.json")
    )


def _folders(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []


def _entry(name: str, path: Path) -> Entry:
    head = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        match = _HEADER.match(line)
        if match:
            head[match[1]] = match[2].strip()
    paper = head.get("paper", name.partition("/")[0])
    return Entry(name, paper, head.get("reference", ""), head.get("formula", ""))
