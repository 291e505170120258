"""Digests of content: what files and arrays are compared by."""

import functools
import hashlib
import os
from pathlib import Path


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def file_digest(path: Path, now: os.stat_result | None = None) -> str:
    """Sixteen digits of `sha256_of`."""
    return sha256_of(path, now)[:16]


def sha256_of(path: Path, now: os.stat_result | None = None) -> str:
    """SHA-256 of a file in state `now`. A file that was not touched since is not read twice."""
    now = now or path.stat()
    return _sha256_of(path, now.st_ino, now.st_size, now.st_mtime_ns)


@functools.lru_cache(maxsize=1 << 14)
def _sha256_of(path: Path, *touched: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
