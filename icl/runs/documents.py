"""JSON as the contract wants it: NaN is null, paths are absolute, no numpy left.

A record carries a seal, a digest of its content: what was changed after it was written is not read. A record
may come from anybody: reading one follows no link, loads no pickle and has a limit.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.digests import digest
from icl.runs import atomic, layout

if TYPE_CHECKING:
    import numpy as np

LARGEST = 2**29  # bytes of a file, and of the arrays in it
_SEAL = "seal"


def to_json(document: Any) -> Any:
    """`document` in JSON's own types: NaN and infinities are null, arrays lists, paths absolute strings."""
    if isinstance(document, Mapping):
        return {str(key): to_json(entry) for key, entry in document.items()}
    if isinstance(document, list | tuple):
        return [to_json(entry) for entry in document]
    if isinstance(document, os.PathLike):
        return str(Path(document).absolute())
    if hasattr(document, "tolist"):  # numpy and torch, scalars and arrays, without importing either
        return to_json(document.tolist())
    if isinstance(document, float):
        return document if math.isfinite(document) else None
    if document is None or isinstance(document, str | int):
        return document
    raise TypeError(f"no JSON form for {type(document).__name__}: {document!r}")


def dumps(document: Any, indent: int | None = 2) -> str:
    return json.dumps(to_json(document), indent=indent, allow_nan=False, ensure_ascii=False)


def same(left: Any, right: Any) -> bool:
    """Return whether two settings are identical: unlike a fingerprint this tells 5 from 5.0, which
    validation may do as well."""
    return json.dumps(to_json(left), sort_keys=True) == json.dumps(to_json(right), sort_keys=True)


def write_record(path: Path, document: Mapping[str, Any]) -> None:
    """Write `document` as JSON with a seal."""
    atomic.write_bytes(path, sealed(document))


def sealed(document: Mapping[str, Any]) -> bytes:
    clean = to_json(document)
    return (dumps({**clean, _SEAL: _seal(clean)}) + "\n").encode()


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the object in `path`; None where there is none, no valid seal, or another schema."""
    try:
        document = json.loads(read_bytes(path))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.pop(_SEAL, None) != _seal(document):
        return None
    return document if document.get("schema", layout.SCHEMA) == layout.SCHEMA else None


def read_bytes(path: Path) -> bytes:
    """Return the content of a record's file, which is no link, no pipe, and not above the limit."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"is no file of at most {LARGEST >> 20} MiB", str(path))
        return file.read()


def arrays_in(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name. Raises ValueError where it is none, or above the limit."""
    import numpy as np

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error
    if size > LARGEST:
        raise ValueError(f"unpacks to {size / 2**20:,.0f} MiB, {LARGEST >> 20} at most")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def parse_yaml(text: str) -> Any:
    """Return what a YAML file of a record holds."""
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # ten times as fast with libyaml


def _seal(clean: Mapping[str, Any]) -> str:
    return digest(json.dumps(clean, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"))
