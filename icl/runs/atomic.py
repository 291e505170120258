"""Files that are there whole or not at all."""

import contextlib
import errno
import os
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path

from icl.errors import InputError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNWRITABLE = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ENOTSUP,
)  # fmt: skip


class Unwritable(InputError):
    """The outputs folder takes no more: no permission, read-only, or full."""


class DiskFull(Unwritable):
    """No room left, no quota, or files may not grow (ulimit -f): the input is not at fault."""


@contextlib.contextmanager
def writing(outputs: Path, errors: Collection[int] = (*NO_ROOM, *_UNWRITABLE)) -> Iterator[None]:
    """Turn the system's error about an unwritable or full `outputs` into a one-line error."""
    try:
        yield
    except OSError as error:
        if error.errno not in errors:
            raise
        kind = DiskFull if error.errno in NO_ROOM else Unwritable
        which = f": {error.filename}" if error.errno == errno.EFBIG and error.filename else ""
        raise kind(f"paths.outputs={outputs}: cannot be written ({error.strerror}{which})") from error


def with_room(outputs: Path) -> contextlib.AbstractContextManager[None]:
    """Report a full disk as `writing` does, around code that writes to `outputs` among much else."""
    return writing(outputs, NO_ROOM)


def temporary(path: Path) -> Path:
    """Return a fresh name next to `path` that `icl clean` recognises as temporary."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file that takes the place of `path` when the block ends without an error, and is
    removed otherwise."""
    part = temporary(path)
    try:
        yield part
        _sync(part)
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.filename is None:  # a write says no name
            error.filename = str(path)
        raise
    with contextlib.suppress(OSError):  # a folder, on file systems that support it
        _sync(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as part:
        part.write_bytes(content)


def write_once(outputs: Path, path: Path, content: bytes) -> bool:
    """Write a file below `outputs` unless that is its content; return whether it was not."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return False
    with writing(outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    return True


def _sync(path: Path) -> None:
    """Make what was written survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
