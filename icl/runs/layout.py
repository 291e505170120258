"""Paths of records below the outputs folder, and a walk over them.

runs/EXPERIMENT/FINGERPRINT/run.json     kind "runs",    id EXPERIMENT, like ahn/theorem3
checks/PAPER/ID/FINGERPRINT.json         kind "checks",  id PAPER/ID
figures/PAPER/FIG/SCALE/FINGERPRINT.json kind "figures", id PAPER/FIG/SCALE
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from icl.errors import InputError

SCHEMA = 1
RUNS = "runs"
JSON_KINDS = ("checks", "figures")
TEMPORARY = re.compile(r"\..+\.tmp")
LIGHTNING = "checkpoints/lightning.ckpt"  # of a run with checkpoint=true
SUPERSEDED = "superseded"
_LONGEST = 200  # file systems take 255, and a figure's file says more than its name
_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)*")


class Place(NamedTuple):
    kind: str
    id: str
    fingerprint: str
    path: Path  # the JSON file that makes the record a record


def is_fingerprint(name: str) -> bool:
    return _FINGERPRINT.fullmatch(name) is not None


def record_path(outputs: Path, kind: str, id: str, fingerprint: str) -> Path:
    """Return the JSON file of a record, which need not exist."""
    if not _ID.fullmatch(id) or max(map(len, id.split("/"))) > _LONGEST:
        raise InputError(
            f"{kind} id={id!r}: must be names of letters, digits, _ . -, none above {_LONGEST}, joined by /"
        )
    if not is_fingerprint(fingerprint):
        raise InputError(f"fingerprint={fingerprint!r}: must be 12 hexadecimal digits")
    folder = outputs / kind / id
    return folder / fingerprint / "run.json" if kind == RUNS else folder / f"{fingerprint}.json"


def walk(outputs: Path) -> Iterator[Place]:
    """Every place that is or should be a record. Symbolic links to folders are not entered."""
    for kind in (RUNS, *JSON_KINDS):
        top = outputs / kind
        for folder, subfolders, files in os.walk(top, followlinks=False):
            id = Path(folder).relative_to(top).as_posix()
            subfolders.sort()
            if kind == RUNS:
                found = [name for name in subfolders if is_fingerprint(name)]
                subfolders[:] = [name for name in subfolders if name not in found]
                yield from (Place(kind, id, name, Path(folder, name, "run.json")) for name in found)
            else:
                stems = (name.removesuffix(".json") for name in sorted(files) if name.endswith(".json"))
                yield from (Place(kind, id, s, Path(folder, f"{s}.json")) for s in stems if is_fingerprint(s))
