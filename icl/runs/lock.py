"""Locks: one process at a time on a record.

The operating system holds them and releases those of a process that dies, on one machine or on several that
share a file system with flock (NFS 4, Lustre). Beside a lock stands who holds it, for those who wait.
"""

import contextlib
import errno
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

_POLL = 0.5  # seconds


def notify(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path: Path, notify: Callable[[str], None] = notify, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock at `path` for the block, creating its folder if needed, which goes if it stays empty; say
    once whom it waits for. Without `wait` yield False where another process has it."""
    lock, who = FileLock(path, thread_local=False), "another process"
    new = [folder for folder in path.parents if not folder.exists()]
    # `icl clean` takes a forgotten one for a temporary file.
    holder, said = path.with_name(f".{path.name}.holder.tmp"), False
    while not (mine := _acquired(lock, path)) and wait:
        if not said:
            with contextlib.suppress(OSError):
                who = holder.read_text() or who
            notify(f"waiting for {who}: {path}")
            said = True
        time.sleep(_POLL)
    try:
        if mine:
            with contextlib.suppress(OSError):
                holder.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        yield mine
    finally:
        if mine:  # the files go while it is held, so that nobody waits for a file that has gone
            for file in (holder, path):
                with contextlib.suppress(OSError):
                    file.unlink()
            lock.release()
            for folder in new:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def is_live(path: Path) -> bool:
    """Return whether a living process holds the lock at `path`."""
    if not path.exists():
        return False
    try:
        with FileLock(path, blocking=False):
            return False
    except (Timeout, OSError) as error:  # held, or another user's
        return not isinstance(error, FileNotFoundError)


def _acquired(lock: FileLock, path: Path) -> bool:
    for _ in range(10):  # another process may remove the folder just now
        with contextlib.suppress(FileNotFoundError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(Timeout):
                return bool(lock.acquire(blocking=False))
            return False
    raise NotADirectoryError(errno.ENOTDIR, "no folder can be made there", str(path.parent))
