"""Records that `icl clean` may remove: those that no longer count, and what crashes left behind.

Never touched: a record that a process works on, a finished record of the current code, an interrupted run
that can continue, anything outside the outputs folder, anything behind a symbolic link.
"""

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from icl.runs import documents, json_records, layout
from icl.runs.code import current_digest
from icl.runs.lock import is_live, locked
from icl.runs.record import invalid_reason
from icl.runs.store import intact_checkpoints


class Removable(NamedTuple):
    path: Path
    why: str
    bytes: int


def find_removable(outputs: str | Path) -> list[Removable]:
    """List what may be removed."""
    top = Path(outputs).resolve()
    found = {}
    for place in layout.walk(top):
        path = _removed(place)
        if not is_live(_lock_of(path)) and (why := _removal_reason(place, top)):
            found[path] = why
    for path in _leftovers(top):
        if not found.keys() & {*path.parents}:
            found[path] = "leftover temporary file"
    return [Removable(path, why, _size(path)) for path, why in found.items() if _is_inside(top, path)]


def remove(outputs: str | Path, removable: Iterable[Removable]) -> list[Path]:
    """Remove what is still removable, each judged again under its lock; return the paths removed."""
    top = Path(outputs).resolve()
    places = {_removed(place): place for place in layout.walk(top)}
    removed = [entry.path for entry in removable if _remove(entry.path, places.get(entry.path), top)]
    for path in removed:
        with contextlib.suppress(OSError):  # folders left empty go too, up to that of the kind
            for folder in (path, *path.parents)[not path.is_dir() : len(path.relative_to(top).parts) - 1]:
                folder.rmdir()
    return removed


def _remove(path: Path, place: layout.Place | None, top: Path) -> bool:
    if place is None:
        there = path.exists()  # or its process has finished
        path.unlink(missing_ok=True)
        return there
    lock = _lock_of(path)
    with locked(lock, wait=False) as mine:
        if not mine or not _removal_reason(place, top):
            return False
        for file in [*path.iterdir()] if path.is_dir() else [path]:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            elif lock.name not in file.name:  # which goes last
                file.unlink()
    return True


def _removed(place: layout.Place) -> Path:
    """Return what is removed of a record: a run's folder, the document of a check or figure."""
    return place.path.parent if place.kind == layout.RUNS else place.path


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock") if path.suffix else path / "lock"


def _removal_reason(place: layout.Place, top: Path) -> str | None:
    record = documents.read_record(place.path)
    digest = current_digest(record or {}, top)
    if place.kind != layout.RUNS:
        why = json_records.invalid_reason(json_records.read(place.path), digest)
        return why and f"stale: {why}"
    folder = place.path.parent
    if record is None:
        return f"orphaned: {invalid_reason(folder, record)}"
    if record.get("status") in ("running", "interrupted"):
        if digest not in (None, record.get("digest")):
            return "stale: interrupted, and made with other code"
        return None if intact_checkpoints(folder) else "orphaned: killed before a checkpoint"
    why = invalid_reason(folder, record, digest)
    return why and f"{'failed' if record.get('status') == 'failed' else 'stale'}: {why}"


def _leftovers(top: Path) -> Iterator[Path]:
    """Yield temporary files in folders where no process is at work."""
    for path in (path for kind in layout.KINDS for path in sorted((top / kind).rglob(".*.tmp"))):
        folder = path.parent.parent if path.parent.name == "checkpoints" else path.parent
        if not any(map(is_live, [*folder.glob("*.lock"), folder / "lock"])):
            yield path


def _size(path: Path) -> int:
    files = [path] if not path.is_dir() else [entry for entry in path.rglob("*") if not entry.is_dir()]
    return sum(file.lstat().st_size for file in files)


def _is_inside(top: Path, path: Path) -> bool:
    """Return whether `path` is no link and lies below `top`, three levels down or deeper, as records do."""
    real = path.resolve()
    return not path.is_symlink() and top in real.parents and len(real.relative_to(top).parts) >= 3
