"""JSON as the contract wants it: NaN is null, paths are absolute, no numpy left.

A record carries a seal, a digest of its content: what was changed after it was written is not read.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl.digests import digest
from icl.runs import atomic

_SEAL = "seal"
_ALIAS = re.compile(r"[&*]id\d")
_TOP = re.compile(r"^(?=[^\s#-])", re.MULTILINE)  # where a key of the outermost mapping begins


def to_json(document: Any) -> Any:
    """`document` in JSON's own types: NaN and infinities are null, arrays lists, paths absolute strings."""
    if document is None or isinstance(document, bool):
        return document
    if isinstance(document, str):
        return str(document)
    if isinstance(document, Mapping):
        return {str(key): to_json(entry) for key, entry in document.items()}
    if isinstance(document, list | tuple):
        return [to_json(entry) for entry in document]
    if isinstance(document, os.PathLike):
        return str(Path(document).absolute())
    if hasattr(document, "tolist"):  # numpy and torch, scalars and arrays, without importing either
        return to_json(document.tolist())
    if isinstance(document, int):
        return int(document)
    if isinstance(document, float):
        return float(document) if math.isfinite(document) else None
    raise TypeError(f"no JSON form for {type(document).__name__}: {document!r}")


def dumps(document: Any, indent: int | None = 2) -> str:
    return json.dumps(to_json(document), indent=indent, allow_nan=False, ensure_ascii=False)


def same(left: Any, right: Any) -> bool:
    """Return whether two settings are identical: unlike a fingerprint this tells 5 from 5.0, which
    validation may do as well."""
    return json.dumps(to_json(left), sort_keys=True) == json.dumps(to_json(right), sort_keys=True)


def write_json(path: Path, document: Any) -> None:
    atomic.write_bytes(path, (dumps(document) + "\n").encode())


def write_record(path: Path, document: Mapping[str, Any]) -> None:
    """Write `document` as JSON with a seal."""
    clean = to_json(document)
    write_json(path, {**clean, _SEAL: _seal(clean)})


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the object in `path`; None where there is none, or no valid seal."""
    return read_json(path, sealed=True)


def read_json(path: Path, *, sealed: bool = False) -> dict[str, Any] | None:
    """Return the object in `path`, without its seal; None where there is no file, no object, or a broken
    seal."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    seal = document.pop(_SEAL, None)
    return document if (seal is None and not sealed) or seal == _seal(document) else None


def parse_yaml(text: str) -> Any:
    """Return what a YAML file of records holds. Most of them share most of their outermost keys: each of
    these is parsed once, and copied."""
    return {key: _copied(node) for part in outermost_keys(text) for key, node in _parsed(part).items()}


def outermost_keys(text: str) -> list[str]:
    """Split YAML into its outermost keys, unless parts of it refer to one another."""
    return [text] if _ALIAS.search(text) else [part for part in _TOP.split(text) if part.strip()]


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # ten times as fast with libyaml


def _copied(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copied(entry) for key, entry in node.items()}
    return [_copied(entry) for entry in node] if isinstance(node, list) else node


def _seal(clean: Mapping[str, Any]) -> str:
    return digest(json.dumps(clean, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"))
