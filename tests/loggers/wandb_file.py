"""The records of W&B's log on disk.

A `.wandb` file is a log in LevelDB's format: 7 bytes of header, then blocks of 32 KiB; each chunk has a
checksum, a length and whether it begins or ends a record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK = 32768
_HEADER = 7  # of the file, and of each chunk: checksum, length, kind
_FULL, _FIRST, _LAST = 1, 2, 4  # between a first and a last chunk there may be more


class Damaged(ValueError):
    """A log that cannot be read to its end."""


def records(log: Path) -> Iterator[Any]:
    """Yield W&B's own records, in order."""
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    data, whole = log.read_bytes(), b""
    at = _HEADER
    while at + _HEADER <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER:  # no room for a chunk: zeros up to the next block
            at += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        chunk = data[at + _HEADER : at + _HEADER + length]
        if len(chunk) < length or zlib.crc32(bytes([kind]) + chunk) != checksum:
            raise Damaged(f"{log}: a record is damaged at byte {at}")
        at += _HEADER + length
        whole = chunk if kind in (_FULL, _FIRST) else whole + chunk
        if kind in (_FULL, _LAST):
            yield Record.FromString(whole)
