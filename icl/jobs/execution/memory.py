"""Memory that is free, and what is given back between two records."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path


def release_memory() -> None:
    """Hands to the system what the C library keeps of arrays that are gone: in pieces between others it would
    grow from run to run (ahn's seven figures in one process at laptop scale: from 1.9 GB to 1.4)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; other libraries have none
        if trim is not None:
            trim(0)


def available_bytes() -> float:
    """Memory that is free, of the machine and, where it is less, of the group that the process is in."""
    found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2]
    meminfo, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        found = [1024.0 * int(lines["MemAvailable"].split()[0])]
    if limit.exists() and limit.read_text().strip().isdigit():
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        found.append(max(float(limit.read_text()) - used, 0.0))
    return min(found)
