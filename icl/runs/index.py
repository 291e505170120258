"""`OUTPUTS/index`: one JSON line per record, so that `icl list` need not walk the store.

The index is a shortcut, never the truth: a line that cannot be read is skipped, a line whose record is gone
does not count, and `rebuild_index` adds the lines that are missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from icl.runs import documents, layout

Entry = dict[str, Any]
Index = dict[tuple[str, str], list[Entry]]


def append(outputs: Path, entry: Entry) -> None:
    """Adds one line. `entry` has kind, id, fingerprint, digest and status."""
    line = documents.dumps(entry, indent=None).encode() + b"\n"
    descriptor = os.open(outputs / "index", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        # Over NFS the appends of two hosts would overlap; a file system without locks has one host.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" + line if torn else line)
    finally:
        os.close(descriptor)


def read_index(outputs: Path) -> Index:
    """The newest entry of each record that still exists, by (kind, id), oldest first."""
    latest: dict[tuple[str, str, str], Entry] = {}
    for entry in _entries(outputs):
        try:
            key = (entry["kind"], entry["id"], entry["fingerprint"])
            latest.pop(key, None)
        except (TypeError, KeyError):
            continue
        latest[key] = entry
    index: Index = {}
    top = str(outputs)
    for (kind, id, fingerprint), entry in latest.items():
        # Not through record_path: ten thousand Paths would cost more than reading the file.
        tail = f"{fingerprint}/run.json" if kind == layout.RUNS else f"{fingerprint}.json"
        if os.path.exists(f"{top}/{kind}/{id}/{tail}"):
            index.setdefault((kind, id), []).append(entry)
    return index


def _entries(outputs: Path) -> list[Any]:
    try:
        lines = (outputs / "index").read_bytes().split(b"\n")
    except OSError:
        return []
    return _parse([line for line in lines if line])


def _parse(lines: list[bytes]) -> list[Any]:
    """All lines as one array, faster than one by one; halved until the lines that cannot be read are out."""
    try:
        return json.loads(b"[%b]" % b",".join(lines))
    except ValueError:
        half = len(lines) // 2
        return _parse(lines[:half]) + _parse(lines[half:]) if half else []


def rebuild_index(outputs: Path) -> int:
    """Adds a line for every record the index lacks or tells otherwise; how many lines that took."""
    index = read_index(outputs)
    known = {(e["kind"], e["id"], e["fingerprint"]): e for entries in index.values() for e in entries}
    added = 0
    for place in layout.walk(outputs):
        record = documents.read_json(place.path)
        if record is None or record.get("status", "done") == "running":
            continue
        entry: Entry = {"kind": place.kind, "id": place.id, "fingerprint": place.fingerprint}
        entry |= {"digest": record.get("digest"), "status": record.get("status", "done")}
        old = known.get((place.kind, place.id, place.fingerprint), {})
        if any(old.get(key) != value for key, value in entry.items()):
            append(outputs, entry)
            added += 1
    return added
