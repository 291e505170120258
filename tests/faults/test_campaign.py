"""Small campaigns of faults and of wrong inputs; `seconds=3600` makes large ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")]


def campaign(name: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{name}", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["failures"] == []
    return found


def test_the_same_command_ends_with_the_same_bytes_whatever_happened() -> None:
    found = campaign("campaign", "stories=12", "commands=train,check")
    assert found["stories"] == 12 and min(found["writes"].values()) > 10


def test_wrong_input_is_refused_and_leaves_nothing() -> None:
    found = campaign("inputs", "seconds=20", "count=200")
    assert found["inputs"] > 5 and "train: 2" in found["codes"]
