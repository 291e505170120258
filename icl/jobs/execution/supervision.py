"""Jobs that a launcher runs in processes of this machine: they save and end where whoever started them is
stopped, or is gone. Launchers themselves kill their jobs, or leave them behind.

While jobs are to go on there is a file, locked by the starter. A job looks at it twice a second and
interrupts itself where the file is gone (it is to stop) or nobody holds it (the starter has died).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from icl.errors import Interrupted

_PAUSE = 0.5  # seconds between two looks
_SAVING = 30.0  # seconds that a job may take to save what it has, once its starter has died


class ParentHandle(NamedTuple):
    """Whoever has jobs run, for these to know."""

    mark: Path
    pid: int


@contextlib.contextmanager
def supervise_children(starter: ParentHandle | None) -> Iterator[None]:
    """While a launcher runs jobs. The first SIGINT or SIGTERM has them stop, and is raised when they have;
    the second is raised at once."""
    if starter is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def stop(signum: int, _: FrameType | None) -> None:
        if received:
            raise Interrupted(signum)
        received.append(signum)
        starter.mark.unlink(missing_ok=True)

    with open(starter.mark, "xb") as file, contextlib.ExitStack() as handlers:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        for number in (signal.SIGINT, signal.SIGTERM):
            handlers.callback(signal.signal, number, signal.signal(number, stop))
        try:
            yield
        except Exception:
            if not received:  # a launcher may raise anything for jobs that end early
                raise
    if received:
        raise Interrupted(received[0])


@contextlib.contextmanager
def supervised(starter: ParentHandle | None) -> Iterator[bool]:
    """Yield False if the parent is gone. Afterwards send SIGINT to this job when the parent stops or dies."""
    if starter is None or os.getpid() == starter.pid:
        yield starter is None or starter.mark.exists()
        return
    global _watch
    _watch = _watch or _ParentWatch()
    if not _is_held(starter.mark):
        yield False
        return
    with _watch.over(starter.mark):
        yield True


class _ParentWatch:
    """The thread of a process that looks after its jobs, which come one after another."""

    def __init__(self) -> None:
        os.setpgid(0, 0)  # Ctrl-C reaches the starter alone, or it would be a job's second signal
        self._parent, self._changing = os.getppid(), threading.Lock()
        self._mark: Path | None = None
        self._told = False
        threading.Thread(target=self._look, daemon=True).start()

    @contextlib.contextmanager
    def over(self, mark: Path) -> Iterator[None]:
        with self._changing:
            self._mark, self._told = mark, False
        try:
            yield
        finally:
            with self._changing:
                self._mark = None
            if self._told:  # it may come as late as this
                with contextlib.suppress(KeyboardInterrupt):
                    time.sleep(0.01)

    def _look(self) -> None:
        while not self._is_over():
            time.sleep(_PAUSE)
        until = time.monotonic() + _SAVING
        while self._mark is not None and time.monotonic() < until:
            time.sleep(_PAUSE / 10)
        os._exit(1)  # there is nobody to give a result to

    def _is_over(self) -> bool:
        """Return whether the parent has died; the running job is interrupted then, or when it is to stop."""
        with self._changing:
            if self._mark is None:
                return os.getppid() != self._parent
            if _is_held(self._mark):
                return False
            if not self._told:
                self._told = True
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
            return self._mark.exists()


def _is_held(mark: Path) -> bool:
    try:
        with open(mark, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # somebody has it, or there are no locks here
        return True
    return False


_watch: _ParentWatch | None = None
