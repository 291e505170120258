"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from icl.errors import InputError

_OF_THE_USER = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST,
    errno.ENAMETOOLONG, errno.ENOTSUP, errno.EFBIG,
}  # fmt: skip


class Unwritable(InputError):
    """The outputs folder takes no more: no permission, read-only, or full."""


class DiskFull(Unwritable):
    """The outputs folder has no room left, its user no quota, or files may not grow (ulimit -f): the input
    is not at fault."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def writing(outputs: Path) -> Iterator[None]:
    """Turn the system's error about an unwritable or full `outputs` into a one-line error."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_USER:
            raise
        kind = DiskFull if error.errno in NO_ROOM else Unwritable
        which = f": {error.filename}" if error.errno == errno.EFBIG and error.filename else ""
        raise kind(f"paths.outputs={outputs}: cannot be written ({error.strerror}{which})") from error


@contextlib.contextmanager
def with_room(outputs: Path) -> Iterator[None]:
    """Report a full disk as `writing` does, around code that writes to `outputs` among much else."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        with writing(outputs):
            raise


def temporary(path: Path) -> Path:
    """Return a fresh name next to `path` that `icl clean` recognises as temporary."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the block ends without an error, and is removed
    otherwise."""
    part = temporary(path)
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.filename is None:  # a write says no name
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, on file systems that support it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
