"""Runs of `icl ARGS` in a process forked from one that has imported everything: a fault costs what its
command costs, without the seconds that imports take.

A fault is something that happens to the process at its nth write below the outputs folder. Python itself says
when that is: every file opened for writing, renamed or removed and every folder made is an audit event, told
before it happens.
"""

import contextlib
import gc
import io
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from icl.cli import main

LIMIT = 480.0  # seconds after which a command that takes one hangs, on a busy machine too
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


@dataclass(frozen=True)
class Ended:
    """The end of a process: exit code (negative a signal's number, None if it hung) and output."""

    code: int | None
    out: str
    err: str
    writes: int = 0  # below outputs, counted if asked for


@dataclass(frozen=True)
class Fault:
    """A call of `happen()` in the process itself before its write number `at`, counted from 1."""

    at: int
    happen: Callable[[], None]


def by(signum: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), signum)


def counting() -> Fault:
    """Return a fault that only counts the writes."""
    return Fault(0, lambda: None)


def call(argv: Sequence[str], outputs: Path, fault: Fault | None = None, *, here: bool = False) -> Ended:
    """Run the command in a process of its own, or `here` for what it imports."""
    if here:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return Ended(main([*argv, f"paths.outputs={outputs}"]), out.getvalue(), "")
    with started(argv, outputs, fault) as process:
        return process.wait()


class Process:
    """A forked process, for its parent."""

    def __init__(self, pid: int, files: Sequence[IO[bytes]]) -> None:
        self.pid, self.code, self._files = pid, 0, files
        self.is_over = False

    def poll(self) -> bool:
        """Return whether the process has ended."""
        if not self.is_over:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.is_over = bool(done)
            self.code = os.waitstatus_to_exitcode(status) if done else 0
        return self.is_over

    def wait(self) -> Ended:
        until = time.monotonic() + LIMIT
        while not self.poll() and time.monotonic() < until:
            time.sleep(0.002)
        hung = not self.is_over
        self.end()
        for file in self._files:
            file.seek(0)
        out, err, count = (file.read().decode(errors="replace") for file in self._files)
        return Ended(None if hung else self.code, out, err, int(count or 0))

    def end(self) -> None:
        if not self.is_over:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.is_over = True


@contextlib.contextmanager
def started(
    argv: Sequence[str], outputs: Path, fault: Fault | None = None, prepare: Callable[[], None] | None = None
) -> Iterator[Process]:
    """Start the command, which is over when the block is."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        pid = os.fork()
        if pid == 0:
            _live([*argv, f"paths.outputs={outputs}"], outputs, fault, prepare, *files)
        process = Process(pid, files)
        stack.callback(process.end)
        yield process


def _live(
    argv: list[str], outputs: Path, fault: Fault | None, prepare: Callable[[], None] | None, *files: IO[bytes]
) -> None:
    """Run the command in the forked process; never return."""
    # What earlier tests left for the garbage collector stays uncollected: a store of torch.distributed would
    # join a thread of the process that was forked, which here may be another or none, and end this one.
    gc.freeze()
    code = 70
    try:
        out, err, count = (file.fileno() for file in files)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        writes = _watch(str(outputs), fault) if fault else [0]
        if prepare:
            prepare()
        code = main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(count, str(writes[0]).encode())
    finally:
        os._exit(code)


def _watch(below: str, fault: Fault) -> list[int]:
    """Count writes from now on, in the list's one entry."""
    seen = [0]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event in _CHANGES:
            path = args[0]
        else:
            return
        name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if name.startswith(below):
            seen[0] += 1
            if seen[0] == fault.at:
                fault.happen()

    sys.addaudithook(hook)
    return seen
