"""A command of icl in a process of its own, as a user runs it: its document, seconds and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    document: dict[str, Any]
    code: int
    seconds: float
    peak_mb: float

    def row(self, name: str, limit_seconds: float, limit_mb: float | None = None) -> dict[str, Any]:
        """Met where everything came out as expected within the limits."""
        met = self.code == 0 and self.seconds < limit_seconds and self.peak_mb < (limit_mb or float("inf"))
        memory = f" and {limit_mb:g} MB" if limit_mb else ""
        return {
            "name": f"{name}, exit code {self.code}",
            "seconds": self.seconds,
            "peak_mb": self.peak_mb,
            "target": f"exit code 0 in {limit_seconds:g} s{memory}",
            "met": met,
        }


def run_icl(*args: str) -> Ran:
    """`icl ARGS format=json logger=none`."""
    command = [sys.executable, "-c", "from icl.cli import main; raise SystemExit(main())", *args]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, "format=json", "logger=none"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)  # of this child alone
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 << 10 if sys.platform != "darwin" else 1 << 20
    return Ran(json.loads(text) if text else {}, process.returncode, seconds, usage.ru_maxrss / unit)
