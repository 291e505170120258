"""Digests of content: what files and arrays are compared by."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def file_digest(path: Path, now: os.stat_result | None = None) -> str:
    """Digest of a file in state `now`. A file that was not touched since is not read twice."""
    now = now or path.stat()
    return _file_digest(path, now.st_ino, now.st_size, now.st_mtime_ns)


@functools.lru_cache(maxsize=1 << 14)
def _file_digest(path: Path, *touched: int) -> str:
    return digest(path.read_bytes())
