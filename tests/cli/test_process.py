"""Tests of `icl` as a process: its exit code, whatever its stdout and stderr are."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import TINY
from tests.processes import ROOT, Command

ICL = "import sys; from icl.cli import main; sys.exit(main())"
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
SAYS = "icl: interrupted; the same command continues from what is saved\n"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ICL stands for `icl`."""
    icl = f"{shlex.quote(sys.executable)} -c {shlex.quote(ICL)}"
    command = ["bash", "-c", line.replace("ICL", icl)]
    return subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("ICL list | head -1; echo ${PIPESTATUS[0]}", 0, "0\n", ""),
        ("ICL list >&-", 0, "", ""),
        ("ICL list <&- >&- 2>&-", 0, "", ""),
        ("ICL list nope 2>&-", 2, "", ""),
        ("ICL list nope 2>/dev/full", 2, "", ""),
        ("ICL list >/dev/full", 4, "", "icl: OSError: [Errno 28] No space left on device\n"),
    ],
)
def test_whatever_its_streams_are(line: str, code: int, out: str, err: str, tmp_path: Path) -> None:
    found = shell(line, tmp_path)
    assert found.returncode == code and found.stderr == err and found.stdout.endswith(out)
    assert list(tmp_path.iterdir()) == []


def _no_stdout() -> None:
    os.close(1)
    sys.stdout = None  # type: ignore[assignment]  as an interpreter begins then


def _no_stderr() -> None:
    os.close(2)
    sys.stderr = None  # type: ignore[assignment]


def _nobody_hears_stderr() -> None:
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(read)


@pytest.mark.parametrize("prepare", [_no_stdout, _no_stderr, _nobody_hears_stderr])
def test_a_run_is_made_all_the_same(prepare: Callable[[], None], tmp_path: Path) -> None:
    """Train without a usable stdout or stderr: lock files and weights need neither."""
    command = Command(["train", *TINY, "logger=none"], tmp_path, prepare=prepare)
    assert command.end() == 0 and "Traceback" not in command.err
    assert bool(command.out) == (prepare is not _no_stdout)
    (run,) = tmp_path.glob("outputs/runs/ahn/theorem3/*")
    assert {"weights.npz", "run.json"} <= {path.name for path in run.iterdir()}


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_begins(signum: signal.Signals, code: int, tmp_path: Path) -> None:
    held = "import sys, time, icl.cli as cli, icl.cli.app as app\n"
    held += "app.run = lambda verb, args: print('begun', flush=True) or time.sleep(10**6)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", held + "sys.exit(cli.main())", "list"], env=ENV, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.send_signal(signum)
    _, err = process.communicate()
    assert (process.returncode, err) == (code, SAYS)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_imports(signum: signal.Signals, code: int, tmp_path: Path) -> None:
    argv = ["train", *TINY, "logger=none"]
    process = subprocess.Popen(
        [sys.executable, "-c", ICL, *argv], env=ENV, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not _catches(process.pid, signum):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signum)
    assert (process.wait(), *process.communicate()) == (code, "", SAYS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_when_it_is_done(signum: signal.Signals, tmp_path: Path) -> None:
    late = f"import atexit, os; atexit.register(os.kill, os.getpid(), {int(signum)})\n"
    argv = [sys.executable, "-c", late + ICL]
    for rest, code in (["list"], 0), (["list", "nope"], 2):
        found = subprocess.run([*argv, *rest], env=ENV, cwd=tmp_path, capture_output=True, check=False)
        assert found.returncode == code


def _catches(pid: int, signum: int) -> bool:
    """Return whether process `pid` has a handler of its own for a signal, SIGTERM's being ours."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc on this system")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = int(next(line.split()[1] for line in lines if line.startswith("SigCgt:")), 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1) and bool(caught >> (signum - 1) & 1)
