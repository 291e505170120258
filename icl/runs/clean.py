"""Records that `icl clean` may remove: those that no longer count, and what crashes left behind.

Never touched: a record that a process works on, a finished record of the current code, an interrupted run
that can continue, anything outside the outputs folder, anything behind a symbolic link.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from icl.errors import InputError
from icl.runs import atomic, checkpoint, documents, json_records, layout
from icl.runs.code import current_digest
from icl.runs.lock import Lock, is_live
from icl.runs.record import complaint, find_done

Digest = Callable[[Mapping[str, Any], Path], str | None]


class Garbage(NamedTuple):
    path: Path
    why: str
    bytes: int
    stamp: int  # when it was last changed: what has changed since it was shown is left alone


def find_garbage(outputs: str | Path, digest_of: Digest = current_digest) -> list[Garbage]:
    """List what may be removed. `digest_of(record, outputs)` is the digest a record would have now; None if
    that is not known."""
    top = Path(outputs).resolve()
    found: list[Garbage] = []
    for place in layout.walk(top):
        record = documents.read_record(place.path) or {}
        digest = digest_of(record, top)
        if place.kind == layout.RUNS:
            found += _in_run(place.path.parent, digest)
        elif not is_live(place.path.with_suffix(".lock")):
            why = json_records.complaint(json_records.read(place.path), digest)
            found += [garbage_at(place.path, f"stale: {why}")] if why else []
    for kind in (layout.RUNS, *layout.JSON_KINDS):
        found += _leftovers(top / kind)
    return [entry for entry in found if _is_inside(top, entry.path)]


def sizes(outputs: str | Path) -> dict[str, int]:
    """Bytes of all that lies below `outputs`, by folder: runs, checks, figures, wandb, cache and so on."""
    top = Path(outputs)
    return {path.name: _size(path) for path in sorted(top.iterdir())} if top.is_dir() else {}


def remove(outputs: str | Path, garbage: Iterable[Garbage]) -> list[Path]:
    """Remove what has not changed since it was listed and is not in use; return the paths removed."""
    top = Path(outputs).resolve()
    chosen = list(garbage)
    for entry in chosen:
        if not _is_inside(top, entry.path):
            raise InputError(f"path={entry.path}: must be a record inside {top}")
    removed = [entry.path for entry in chosen if _remove(entry)]
    for path in removed:
        _prune(top, path.parent)
    return removed


def _in_run(folder: Path, digest: str | None) -> Iterator[Garbage]:
    if is_live(folder / "lock"):
        return
    why = _why_worthless(folder, digest)
    if why is not None:
        yield garbage_at(folder, why)
        return
    aside = folder / layout.SUPERSEDED
    if aside.is_dir() and complaint(folder, documents.read_record(folder / "run.json")) is None:
        yield garbage_at(aside, "superseded: a later attempt is done")
    for place in (folder, folder / "checkpoints"):
        yield from (garbage_at(path, "leftover temporary file") for path in _temporaries(place))


def _why_worthless(folder: Path, digest: str | None) -> str | None:
    if find_done(folder, digest) is not None:
        return None
    run = documents.read_record(folder / "run.json")
    if run is None:
        return f"orphaned: {complaint(folder, run)}"
    if run.get("status") in ("running", "interrupted"):
        if run.get("schema") != layout.SCHEMA or digest not in (None, run.get("digest")):
            return "stale: interrupted, and made with code or a schema that are no longer current"
        resumable = checkpoint.candidates(folder / "checkpoints")
        return None if resumable else "orphaned: killed before its first checkpoint"
    return f"{'failed' if run.get('status') == 'failed' else 'stale'}: {complaint(folder, run, digest)}"


def _leftovers(top: Path) -> Iterator[Garbage]:
    """Temporary files and dead locks outside run folders."""
    for name, subfolders, files in os.walk(top, followlinks=False):
        folder = Path(name)
        subfolders[:] = [sub for sub in subfolders if not _is_own_affair(sub)]
        locks = [folder / file for file in files if file.endswith(".lock")]
        dead = [path for path in locks if not is_live(path)]
        yield from (garbage_at(path, "lock of a dead process") for path in dead)
        if len(dead) == len(locks):
            yield from (garbage_at(path, "leftover temporary file") for path in _temporaries(folder))


def _is_own_affair(subfolder: str) -> bool:
    return layout.is_fingerprint(subfolder) or layout.TEMPORARY.fullmatch(subfolder) is not None


def _temporaries(folder: Path) -> list[Path]:
    try:
        return [path for path in sorted(folder.iterdir()) if layout.TEMPORARY.fullmatch(path.name)]
    except OSError:
        return []


def garbage_at(path: Path, why: str) -> Garbage:
    """Return an entry for `remove`, as the path is now."""
    return Garbage(path, why, _size(path), _stamp(path))


def _size(path: Path) -> int:
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in files)


def _stamp(path: Path) -> int:
    """Newest change of a file, or of a folder's files."""
    inside = [entry for entry in path.iterdir() if not entry.is_dir()] if path.is_dir() else [path]
    times = []
    for entry in inside:
        with contextlib.suppress(OSError):
            times.append(entry.lstat().st_mtime_ns)
    return max(times, default=0)


def _is_inside(top: Path, path: Path) -> bool:
    """Return whether `path` is no link and lies below `top`, three levels down or deeper, as records do."""
    real = path.resolve()
    return not path.is_symlink() and top in real.parents and len(real.relative_to(top).parts) >= 3


def _remove(entry: Garbage) -> bool:
    """Rename and remove a record: a process that starts the same one now finds nothing instead of half."""
    if not os.path.lexists(entry.path) or _stamp(entry.path) != entry.stamp:
        return False
    guard = _guard(entry.path)
    with contextlib.ExitStack() as stack:
        if guard is not None:
            lock = Lock(guard)
            if not lock.acquire(blocking=False):
                return False
            stack.callback(lock.release)
        if guard == entry.path:  # a dead lock, ours by now: releasing it removes it
            return True
        gone = atomic.temporary(entry.path)
        try:
            os.rename(entry.path, gone)
        except FileNotFoundError:  # its process has finished
            return False
        if gone.is_dir():
            shutil.rmtree(gone)
        else:
            gone.unlink()
    return True


def _guard(path: Path) -> Path | None:
    """Return the lock whose holder may be writing `path`; None if there is none."""
    if path.suffix in (".json", ".lock"):
        return path.with_suffix(".lock")
    for folder in (path, *path.parents):
        if layout.is_fingerprint(folder.name):
            return folder / "lock"
    return None


def _prune(top: Path, folder: Path) -> None:
    """Remove empty folders, up to the folder of the kind."""
    while len(folder.resolve().relative_to(top).parts) > 1:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
