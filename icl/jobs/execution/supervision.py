"""Stop the jobs that a launcher runs in processes of this machine when their parent stops or dies: they save
their state and end. Launchers themselves kill such jobs or leave them behind.

As long as the jobs may go on, the parent holds a lock on a file. A job looks at it twice a second and
interrupts itself if the file is gone (the parent is stopping) or unlocked (the parent has died).
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
_SAVING = 30.0  # seconds in which a job may save its state after its parent has died


class ParentHandle(NamedTuple):
    """The process that runs the jobs: its number, and the file it holds a lock on."""

    lock_file: Path
    pid: int


@contextlib.contextmanager
def supervise_children(parent: ParentHandle | None) -> Iterator[None]:
    """Stop the jobs at the first SIGINT or SIGTERM, and raise it when they have ended; raise a second one at
    once."""
    if parent is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def stop(signum: int, _: FrameType | None) -> None:
        if received:
            raise Interrupted(signum)
        received.append(signum)
        parent.lock_file.unlink(missing_ok=True)

    with open(parent.lock_file, "xb") as file, contextlib.ExitStack() as handlers:
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
def supervised(parent: ParentHandle | None) -> Iterator[bool]:
    """Yield False if the parent is gone. Afterwards send SIGINT to this job when the parent stops or dies."""
    if parent is None or os.getpid() == parent.pid:
        yield parent is None or parent.lock_file.exists()
        return
    global _watch
    _watch = _watch or _ParentWatch()
    if not _is_held(parent.lock_file):
        yield False
        return
    with _watch.over(parent.lock_file):
        yield True


class _ParentWatch:
    """A thread that watches the parent for the jobs of this process, which run one after another."""

    def __init__(self) -> None:
        os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, or it would be a job's second signal
        self._parent, self._changing = os.getppid(), threading.Lock()
        self._lock_file: Path | None = None
        self._interrupted = False
        threading.Thread(target=self._look, daemon=True).start()

    @contextlib.contextmanager
    def over(self, lock_file: Path) -> Iterator[None]:
        with self._changing:
            self._lock_file, self._interrupted = lock_file, False
        try:
            yield
        finally:
            with self._changing:
                self._lock_file = None
            if self._interrupted:  # the signal may arrive as late as this
                with contextlib.suppress(KeyboardInterrupt):
                    time.sleep(0.01)

    def _look(self) -> None:
        while not self._is_over():
            time.sleep(_PAUSE)
        until = time.monotonic() + _SAVING
        while self._lock_file is not None and time.monotonic() < until:
            time.sleep(_PAUSE / 10)
        os._exit(1)  # nobody is left to take a result

    def _is_over(self) -> bool:
        """Return whether the parent has died; the running job is interrupted then, or when it is to stop."""
        with self._changing:
            if self._lock_file is None:
                return os.getppid() != self._parent
            if _is_held(self._lock_file):
                return False
            if not self._interrupted:
                self._interrupted = True
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
            return self._lock_file.exists()


def _is_held(lock_file: Path) -> bool:
    try:
        with open(lock_file, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # another process holds it, or the file system has no locks
        return True
    return False


_watch: _ParentWatch | None = None
