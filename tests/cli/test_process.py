"""Tests of `icl` as a process: its exit code, whatever its stdout and stderr are."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import TINY
from tests.processes import ICL, ROOT, Command

ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


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
        ("PYTHONIOENCODING=latin-1 ICL list >/dev/null", 0, "", ""),
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


def test_a_signal_while_the_interpreter_ends_leaves_the_exit_code(tmp_path: Path) -> None:
    """Send the second Ctrl-C when modules are cleared, which takes longer the more is imported."""
    code = """if True:
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from icl.cli import process
        class Late:
            def __del__(self, kill=os.kill, pid=os.getpid()):
                kill(pid, 2)
        process.prepare()
        late = Late()
        sys.exit(process.finish(130))
    """
    assert subprocess.run([sys.executable, "-c", code], env=ENV, cwd=tmp_path, check=False).returncode == 130


@pytest.mark.parametrize(("given", "found"), [({}, "1 10000"), ({"OPENBLAS_NUM_THREADS": "3"}, "3 10000")])
def test_idle_threads_do_not_wait_busily(given: dict[str, str], found: str, tmp_path: Path) -> None:
    """Numpy and torch read the environment when they are imported, which must come after."""
    code = """if True:
        import os, sys
        from icl.cli import process
        assert not {"numpy", "torch"} & set(sys.modules)
        process.prepare()
        print(os.environ["OPENBLAS_NUM_THREADS"], os.environ["GOMP_SPINCOUNT"])
    """
    env = {key: value for key, value in ENV.items() if key not in ("OPENBLAS_NUM_THREADS", "GOMP_SPINCOUNT")}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=env | given, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == found.split()
