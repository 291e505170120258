"""Tests of `icl` as a process: streams that end early, and what its libraries read as they start."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ICL, ROOT

ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("line", "out"),
    [("ICL list | head -1; echo ${PIPESTATUS[0]}", "0\n"), ("ICL list nope 2>/dev/null; echo $?", "2\n")],
)
def test_whatever_its_streams_are(line: str, out: str, tmp_path: Path) -> None:
    icl = f"{shlex.quote(sys.executable)} -c {shlex.quote(ICL)}"
    command = ["bash", "-c", line.replace("ICL", icl)]
    found = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    assert found.stdout.endswith(out) and found.stderr == "" and list(tmp_path.iterdir()) == []


def test_idle_threads_do_not_wait_busily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy and torch read the environment when they are imported, which must come after."""
    from icl import cli

    monkeypatch.setattr(sys, "argv", ["icl", "--help"])
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    assert cli.main() == 0
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ.pop("GOMP_SPINCOUNT")) == ("3", "10000")
