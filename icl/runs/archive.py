"""Copies of finished records, in the layout of their outputs folder, with a SHA256SUMS."""

from pathlib import Path
from typing import Any

from icl.digests import sha256_of
from icl.errors import InputError
from icl.runs import atomic, documents, json_records, layout
from icl.runs.record import DATA_FILES, find_done

SUMS = "SHA256SUMS"


def write_archive(folder: Path, outputs: Path) -> dict[str, Any]:
    """Copy what is finished, and return what the folder holds now."""
    chosen = [place for place in layout.walk(outputs) if _is_finished(place)]
    if not chosen:
        raise InputError(f"nothing finished in {outputs}")
    empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not empty and not (folder / SUMS).is_file():
        raise InputError(f"{folder}: must be an empty folder, or one that has {SUMS}")
    new = []
    try:
        for place in chosen:
            copied = [  # of files that are no links
                atomic.write_once(folder, folder / file.relative_to(outputs), documents.read_bytes(file))
                for file in _files(place)
            ]
            new += [place.path.relative_to(outputs).as_posix()] if any(copied) else []
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
        names = [path.relative_to(folder).as_posix() for path in files]
        lines = [f"{sha256_of(path)}  {name}\n" for path, name in zip(files, names, strict=True)]
        atomic.write_bytes(folder / SUMS, "".join(lines).encode())
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be copied ({error.strerror})") from error
    size, sums = sum(path.stat().st_size for path in files), sha256_of(folder / SUMS)
    return {"folder": str(folder), "files": names, "new": new, "bytes": size, "sha256": sums}


def _is_finished(place: layout.Place) -> bool:
    if place.kind == layout.RUNS:
        return find_done(place.path.parent, None) is not None
    return json_records.read(place.path) is not None


def _files(place: layout.Place) -> list[Path]:
    """Return the files of a record: of a run without its checkpoints, of a figure with its pictures."""
    if place.kind == "checks":
        return [place.path]
    beside = sorted(path for path in place.path.parent.iterdir() if path.is_file() and path.suffix != ".lock")
    return [path for path in beside if place.kind != layout.RUNS or path.name in (*DATA_FILES, "run.json")]
