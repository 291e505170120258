"""The figures' files: copies and records beside the page."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from icl.report.content import ReportEntry
from icl.runs import atomic, documents

FOLDER = "files"


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height, from the file's header."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return image.size
    except OSError:
        return None


@dataclass(frozen=True)
class Picture:
    """A drawing: its files as links by extension, and the size of the PNG, if it is there."""

    files: Mapping[str, str]
    size: tuple[int, int] | None


def picture(entry: ReportEntry, folder: Path, page: str) -> Picture:
    """Brings the figure's files up to date below `folder`, where `page` has a place of its own."""
    place, files = _place(folder, page, entry), {}
    for extension, source in ((entry.document or {}).get("files") or {}).items():
        target = place / re.sub(r"[^\w.-]|^\.+", "_", Path(source).name)
        if _copy_if_changed(Path(source), target):
            files[str(extension)] = target
    links = {extension: _link(folder, target) for extension, target in files.items()}
    if links:
        links["json"] = record(entry, folder, page)
    return Picture(links, png_size(files["png"]) if "png" in files else None)


def record(entry: ReportEntry, folder: Path, page: str) -> str:
    """Write the whole document and its provenance beside the page, and return the link to it."""
    path = _place(folder, page, entry) / "record.json"
    content = documents.dumps({"document": entry.document, "record": entry.record}).encode()
    if not path.is_file() or path.read_bytes() != content:
        _put(path, lambda part: part.write_bytes(content))
    return _link(folder, path)


def _place(folder: Path, page: str, entry: ReportEntry) -> Path:
    parts = [re.sub(r"[^\w.-]|^\.+", "_", part) for part in (page, entry.group, *entry.place.split("/"))]
    return folder.joinpath(FOLDER, *parts)


def _link(folder: Path, path: Path) -> str:
    return quote(path.relative_to(folder).as_posix())


def _copy_if_changed(source: Path, target: Path) -> bool:
    """Copy `source` to `target` unless size and time agree; return whether `target` is `source` now."""
    try:
        ours, theirs = target.stat() if target.exists() else None, source.stat()
        if ours is None or (ours.st_size, ours.st_mtime_ns) != (theirs.st_size, theirs.st_mtime_ns):
            _put(target, lambda part: shutil.copy2(source, part))
    except FileNotFoundError:  # the figure was removed
        return False
    return True


def _put(target: Path, fill: Callable[[Path], object]) -> None:
    """Whole or not at all; not synced to the disk, since a page that a power cut loses is written again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = atomic.temporary(target)
    try:
        fill(part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def remove_others(folder: Path, page: str, kept: Collection[str]) -> None:
    """Files that the page no longer shows, those of a figure that is gone. Other pages keep theirs."""
    for place, _, names in os.walk(folder / FOLDER / page, topdown=False):
        for name in names:
            path = Path(place, name)
            if quote(path.relative_to(folder).as_posix()) not in kept:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(place)
