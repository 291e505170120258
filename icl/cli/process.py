"""`icl` as a process of its own: it ends with its exit code whenever a signal comes and whatever it was given
as stdin, stdout and stderr."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

INTERRUPTED = "icl: interrupted; the same command continues from what is saved"

# Threads that have no work wait busily for more, and take the cores from those that have: numpy's BLAS is for
# small matrices here, and torch's threads wait some microseconds, not milliseconds.
THREAD_SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "GOMP_SPINCOUNT": "10000"}


def prepare() -> None:
    """Open closed streams, and end at a signal with the code of an interruption: nothing has begun. Set what
    numpy and torch read when they are imported."""
    for name, value in THREAD_SETTINGS.items():
        os.environ.setdefault(name, value)
    _open_what_is_closed()
    sys.stderr = _Stderr()
    if isinstance(sys.stdout, io.TextIOWrapper):  # whose encoding may lack what is printed
        sys.stdout.reconfigure(errors="backslashreplace")
    _on_signals(lambda signum: _end(128 + signum, INTERRUPTED))
    atexit.register(_ignore_signals)  # the first to be registered is the last to be called


def finish(code: int) -> int:
    """Return the exit code. As long as the process still lives, a signal ends it with this code, too."""
    _on_signals(lambda _: _end(code))
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or it is flushed, and complained of, again
    return code


def _ignore_signals() -> None:
    """Ignore signals while the interpreter takes itself apart, when a handler in Python has no effect and a
    signal would end the process without its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _on_signals(act: Callable[[int], NoReturn]) -> None:
    def handle(signum: int, _: FrameType | None) -> None:
        act(signum)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for a job in the background, or under nohup
            signal.signal(number, handle)


def _end(code: int, line: str = "") -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode() if line else b"")
    os._exit(code)


def _open_what_is_closed() -> None:
    """Open closed streams (`>&-`): else the first file that is opened would be taken for stdout."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class _Stderr(io.TextIOWrapper):
    """stderr whose closed pipe or full disk ends nothing."""

    def __init__(self) -> None:
        raw = io.FileIO(2, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=True)

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()
