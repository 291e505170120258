"""A command of icl in a process of its own, as a user runs it: its document, seconds and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

NO_LOGGER = ("list", "clean", "runs")  # verbs


# A small process between us and the command: what a process is said to have taken at most is never less than
# what its starter had, and we have loaded torch.
_BETWEEN = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)  # of this child alone
usage_line = [os.waitstatus_to_exitcode(status), time.perf_counter() - started, usage.ru_maxrss]
os.write(int(sys.argv[1]), json.dumps(usage_line).encode())
"""


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
    """Run `icl ARGS format=json`, with logger=none where no other is named."""
    named = args[0] in NO_LOGGER or any(arg.startswith("logger=") for arg in args)
    common = ["format=json", *([] if named else ["logger=none"])]
    read, write = os.pipe()
    command = [sys.executable, "-c", "from icl.cli import main; raise SystemExit(main())", *args, *common]
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _BETWEEN, str(write), *command],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, pass_fds=[write],
    ) as process:  # fmt: skip
        os.close(write)
        assert process.stdout is not None
        text = process.stdout.read()
    with os.fdopen(read) as usage_line:
        code, seconds, peak = json.load(usage_line)
    unit = 1 << 10 if sys.platform != "darwin" else 1 << 20
    return Ran(json.loads(text) if text else {}, code, seconds, peak / unit)
