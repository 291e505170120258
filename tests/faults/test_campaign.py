"""A small campaign of faults; `python -m tests.faults.campaign seconds=3600` is a large one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_the_same_command_ends_with_the_same_bytes_whatever_happened() -> None:
    campaign = [sys.executable, "-m", "tests.faults.campaign", "stories=12", "commands=train,check"]
    done = subprocess.run(
        campaign, cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["stories"] == 12 and found["failures"] == [] and min(found["writes"].values()) > 10
