"""Locks: one process at a time on a record, on one machine or on several that share a folder.

The lock is a file that appears with its content in place (hard link), is held by `flock` for the life of
its process, and is touched every few seconds. It can be taken when both agree that it is free: the kernel
grants the flock, and the process named in the file is gone (same host: no such process, or another one under
its number; other host: not touched for long). Where flock reaches across hosts (NFS 4) it settles every race;
where it does not, two hosts that replace a stale lock at the same moment both look again after a pause, and
only the one whose file is there has it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from icl.runs import atomic

HEARTBEAT = 5.0
STALE_AFTER = 60.0
_SETTLE = 1.0
_POLL, _SLOWEST_POLL = 0.2, 2.0  # the longer it has waited, the less a moment more matters
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def notify(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


class Lock:
    """`with Lock(path): ...`, or `acquire` and `release`. Not reentrant."""

    def __init__(self, path: Path, heartbeat: float = HEARTBEAT, stale_after: float = STALE_AFTER) -> None:
        self.path = path
        self.heartbeat = heartbeat
        self.stale_after = stale_after
        self._descriptor: int | None = None
        self._stop = threading.Event()
        self._beating: threading.Thread | None = None

    def acquire(self, on_wait: Callable[[str], None] | None = None, *, blocking: bool = True) -> bool:
        """Acquire the lock, creating its folder if needed; report the holder once through `on_wait`."""
        waited, pause = False, _POLL
        while not self._attempt():
            if not blocking:
                return False
            if on_wait is not None and not waited:
                on_wait(f"waiting for {_describe(_read(self.path))}: {self.path}")
            waited = True
            time.sleep(pause)
            pause = min(2 * pause, _SLOWEST_POLL)
        _held.add(self)
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, args=(self._stop, self._descriptor), daemon=True)
        self._beating.start()
        return True

    def release(self) -> None:
        if self._descriptor is None:
            return
        self._stop.set()
        if self._beating is not None:
            self._beating.join()
        _held.discard(self)
        if self.is_held():
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = None

    def is_held(self) -> bool:
        """Return whether the lock is still ours. After a long sleep another host may have it."""
        return self._descriptor is not None and _same_file(self._descriptor, self.path)

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _attempt(self) -> bool:
        """Try once, with a new file that is locked and filled before it gets the lock's name."""
        if _is_flocked(self.path):
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mine = atomic.temporary(self.path)
        try:
            descriptor = os.open(mine, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:  # the folder was cleaned away just now
            return False
        taken = False
        try:
            _flock(descriptor)
            os.write(descriptor, json.dumps(_myself()).encode())
            taken = self._put(mine, descriptor)
        finally:
            with contextlib.suppress(OSError):
                mine.unlink()
            if taken:
                self._descriptor = descriptor
            else:
                os.close(descriptor)
        return taken

    def _put(self, mine: Path, descriptor: int) -> bool:
        try:
            os.link(mine, self.path)
            return True
        except FileExistsError:
            # Over NFS a link that was made is requested again where the answer was lost.
            return _same_file(descriptor, self.path) or self._take_over(mine, descriptor)
        except FileNotFoundError:
            return False

    def _take_over(self, mine: Path, descriptor: int) -> bool:
        try:
            theirs = os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            if not _flock(theirs) or not _same_file(theirs, self.path):
                return False
            holder = _parse(os.pread(theirs, 4096, 0))
            # Both times are set by the file system, so the hosts' clocks need not agree.
            os.utime(descriptor)
            age = os.fstat(descriptor).st_mtime - os.fstat(theirs).st_mtime
            if _alive(holder, age, self.stale_after):
                return False
            os.replace(mine, self.path)
        finally:
            os.close(theirs)
        if holder.get("host") != socket.gethostname():
            time.sleep(_SETTLE)
        return _same_file(descriptor, self.path)

    def _beat(self, stop: threading.Event, descriptor: int) -> None:
        while not stop.wait(self.heartbeat):
            with contextlib.suppress(OSError):
                os.utime(descriptor)


def is_live(path: Path, stale_after: float = STALE_AFTER) -> bool:
    """Return whether a living process holds the lock at `path`. Changes nothing."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # another user's process
        return True
    try:
        if not _flock(descriptor):
            return True
        age = time.time() - os.fstat(descriptor).st_mtime
        return _alive(_parse(os.pread(descriptor, 4096, 0)), age, stale_after)
    finally:
        os.close(descriptor)


def _is_flocked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _flock(descriptor)
    finally:
        os.close(descriptor)


def _flock(descriptor: int) -> bool:
    """Return False when another process has it. A file system without flock leaves the decision to the file's
    content."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _BUSY
    return True


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _myself() -> dict[str, Any]:
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _start_of(pid)}


def _read(path: Path) -> dict[str, Any]:
    try:
        return _parse(path.read_bytes())
    except OSError:
        return {}


def _parse(content: bytes) -> dict[str, Any]:
    try:
        holder = json.loads(content)
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(holder: dict[str, Any]) -> str:
    return f"process {holder['pid']} on {holder.get('host')}" if "pid" in holder else "another process"


def _alive(holder: dict[str, Any], age: float, stale_after: float) -> bool:
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or not isinstance(pid, int):
        return age < stale_after
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return holder.get("started") == _start_of(pid)


def _start_of(pid: int) -> str | None:
    """Boot and clock tick a process started at, which tell a process from a later one of the same number."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The second field, the command's name in brackets, may itself hold blanks and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{boot} {fields[19]}"


def _forget_in_child() -> None:
    """Close inherited locks in a forked child, which must not keep them when its parent ends."""
    for lock in list(_held):
        if lock._descriptor is not None:
            os.close(lock._descriptor)
            lock._descriptor = None
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
