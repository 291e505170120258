"""Memory: how much there is, and what does not fit."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from icl.errors import InputError


def available_bytes() -> float:
    """Return the memory available on this machine or, where it is less, to the process's control group."""
    found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2]
    meminfo, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        found = [1024.0 * int(lines["MemAvailable"].split()[0])]
    if limit.exists() and limit.read_text().strip().isdigit():
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        found.append(max(float(limit.read_text()) - used, 0.0))
    return min(found)


@contextlib.contextmanager
def fits_in_memory(settings: str) -> Iterator[None]:
    """Refuse `settings` where memory cannot be allocated within: by Python, numpy or torch."""
    try:
        yield
    except (MemoryError, OverflowError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not re.search(r"memory|overflow", str(error)):
            raise
        raise InputError(f"{settings}: one of them is too large for this machine's memory") from error
