"""Verification of W&B's log on disk: what a full disk does not take, W&B drops silently.

A `.wandb` file is a log in LevelDB's format: 7 bytes of header, then blocks of 32 KiB; each chunk has a
checksum, a length and whether it begins or ends a record; a record says its own number.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_BLOCK = 32768
_HEADER = 7  # of the file, and of each chunk: checksum, length, kind
_FULL, _FIRST, _LAST = 1, 2, 4  # between a first and a last chunk there may be more


class Damaged(ValueError):
    """A log that cannot be read to its end."""


def holds_all(logs: Sequence[Path]) -> bool:
    """Return whether the logs of one run, oldest first, hold it from first step to end without a gap.

    An interrupted run has a log for each time it was continued; one that was told again from its record has
    it all in the last.
    """
    for log in reversed(logs):
        number, ended, first_step = 0, False, None
        try:
            for number, record in enumerate(records(log), 1):
                if record.num != number:
                    return False
                ended = record.HasField("exit")
                if first_step is None and record.HasField("history"):
                    first_step = record.history.step.num
        except Damaged:
            return False
        if not ended:
            return False
        if not first_step:  # from the start, or of no step
            return True
    return False


def held_within(seconds: float, logs: Sequence[Path]) -> bool:
    """Wait for W&B's own process, which writes some time after the call."""
    deadline = time.monotonic() + seconds
    while not holds_all(logs):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


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
