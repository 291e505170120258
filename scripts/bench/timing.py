"""Two pieces of work timed in turn, so that a drifting machine slows both alike."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[], object]
Measured = tuple[float, float]  # wall and CPU seconds, of all threads


def compare(name: str, works: dict[str, Callable[[], Measured]], repeats: int) -> float:
    """Run the two works A B A B ...; print the medians and return A's CPU time over B's, pair by pair."""
    taken: dict[str, list[Measured]] = {label: [] for label in works}
    for _ in range(repeats):
        for label, work in works.items():
            taken[label].append(work())
    first, second = taken.values()
    ratio = statistics.median(a[1] / b[1] for a, b in zip(first, second, strict=True))
    told = []
    for label, times in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        told.append(f"{label} {wall:.4g} s (CPU {cpu:.4g})")
    print(f"{name}: {ratio:.2f} times the CPU; {', '.join(told)}", flush=True)
    return ratio


def in_process(work: Work) -> Callable[[], Measured]:
    """Return a timer of `work`, which runs once before it is timed."""
    work()

    def timed() -> Measured:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - wall, time.process_time() - cpu

    return timed


def icl(*words: str) -> tuple[dict[str, Any], Measured]:
    """Run `icl WORDS` from an empty outputs folder; return its document, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        return icl_in(folder, *words)


def icl_in(folder: str, *words: str) -> tuple[dict[str, Any], Measured]:
    """Run `icl WORDS` with `folder` for its outputs; return its document, and its seconds."""
    command = [str(Path(sys.executable).with_name("icl")), *words, f"paths.outputs={folder}", "format=json"]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if not text:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return json.loads(text), seconds
