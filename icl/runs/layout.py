"""Paths of records below the outputs folder, and a walk over them.

runs/EXPERIMENT/FINGERPRINT/run.json     kind "runs",    id EXPERIMENT, like ahn/theorem3
checks/PAPER/ID/FINGERPRINT.json         kind "checks",  id PAPER/ID
figures/PAPER/FIG/SCALE/figure.json      kind "figures", id PAPER/FIG/SCALE
figures/PAPER/FIG/SCALE/FINGERPRINT/figure.json  the same, of other settings than the shipped ones
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from icl.errors import InputError

SCHEMA = 1
RUNS = "runs"
KINDS = (RUNS, "checks", "figures")
FIGURE, ARRAYS = "figure.json", "arrays.npz"  # of a figure
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
    if not _ID.fullmatch(id):
        raise InputError(f"{kind} id={id!r}: must be names of letters, digits, _ . -, joined by /")
    if not is_fingerprint(fingerprint):
        raise InputError(f"fingerprint={fingerprint!r}: must be 12 hexadecimal digits")
    folder = outputs / kind / id
    if kind == "checks":
        return folder / f"{fingerprint}.json"
    return folder / fingerprint / ("run.json" if kind == RUNS else FIGURE)


def walk(outputs: Path) -> Iterator[Place]:
    """Every place that is or should be a record. Symbolic links to folders are not entered."""
    for kind in KINDS:
        top = outputs / kind
        for name, subfolders, files in os.walk(top, followlinks=False):
            folder, names = Path(name), sorted(files)
            subfolders.sort()
            if kind == RUNS:
                found = [folder / name / "run.json" for name in subfolders if is_fingerprint(name)]
                subfolders[:] = [name for name in subfolders if not is_fingerprint(name)]
            elif kind == "checks":
                found = [folder / n for n in names if n.endswith(".json") and is_fingerprint(n[:-5])]
            else:
                found = [folder / FIGURE] if FIGURE in names else []
            for path in found:
                *id, last = path.with_suffix("").relative_to(top).parts[: None if kind == "checks" else -1]
                if is_fingerprint(last):
                    yield Place(kind, "/".join(id), last, path)
                else:
                    yield Place(kind, "/".join([*id, last]), "", path)
