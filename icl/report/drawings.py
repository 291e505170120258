"""The figures' files: copies and records beside the page, and the size of the picture."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from icl.report.book import Entry
from icl.runs import atomic, documents

FOLDER = "figures"


def png_size(path: Path) -> tuple[int, int] | None:
    """Width and height, from the file's header."""
    try:
        with open(path, "rb") as file:
            head = file.read(24)
    except OSError:
        return None
    if head[:8] != b"\x89PNG\r\n\x1a\n" or len(head) < 24:
        return None
    width, height = struct.unpack(">II", head[16:])
    return width, height


def copies(entry: Entry, folder: Path) -> dict[str, str]:
    """Brings the figure's files up to date below `folder`; their links, by extension."""
    files = (entry.document or {}).get("files") or {}
    parts = [re.sub(r"[^\w.-]|^\.+", "_", part) for part in entry.id.split("/")]
    place = folder.joinpath(FOLDER, *parts)
    links = {}
    for extension, source in files.items():
        name = re.sub(r"[^\w.-]|^\.+", "_", Path(source).name)
        if _copied(Path(source), place / name):
            links[str(extension)] = quote("/".join([FOLDER, *parts, name]))
    if links:
        _write(place / "record.json", documents.dumps({"document": entry.document, "record": entry.record}))
        links["json"] = quote("/".join([FOLDER, *parts, "record.json"]))
    return links


def _write(path: Path, text: str) -> None:
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        _put(path, lambda part: part.write_bytes(content))


def _copied(source: Path, target: Path) -> bool:
    """Whether `target` is `source` now. One of the same size and time is not copied again."""
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


def remove_others(folder: Path, links: Iterable[Mapping[str, str]]) -> None:
    """Files below figures/ that the page does not show: of another scale, or of a figure that is gone."""
    kept = {link for of_entry in links for link in of_entry.values()}
    for place, _, names in os.walk(folder / FOLDER, topdown=False):
        for name in names:
            path = Path(place, name)
            if quote(path.relative_to(folder).as_posix()) not in kept:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(place)
