"""Checkpoints: tensors and plain data, the newest two, each named by a digest of its content.

A file cut short or altered no longer fits its name, and the one before it is used.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

from icl.digests import digest
from icl.runs import atomic

KEPT = 2
_PLAIN = {type(None), bool, int, float, str, bytes}
_NAME = re.compile(r"(\d{6,})-([0-9a-f]{16})\.pt")


def save(folder: Path, state: dict[str, Any]) -> Path:
    """Write `state` as the newest checkpoint and drop all but the newest two.

    Raises TypeError where `state` could not be read back with `torch.load(weights_only=True)`.
    """
    import torch

    _insist_plain("checkpoint", state, (torch.Tensor,))
    packed = io.BytesIO()
    torch.save(state, packed)
    content = packed.getvalue()
    folder.mkdir(exist_ok=True)
    earlier = _numbered(folder)
    number = earlier[0][0] + 1 if earlier else 1
    path = folder / f"{number:06d}-{digest(content)}.pt"
    atomic.write_bytes(path, content)
    for _, old in earlier[KEPT - 1 :]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def candidates(folder: Path) -> list[Path]:
    """Checkpoints whose content is intact, newest first."""
    return [path for _, path in _numbered(folder) if _is_intact(path)]


def load(path: Path) -> dict[str, Any]:
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _insist_plain(key: str, value: Any, tensors: tuple[type, ...]) -> None:
    """Refuse what is not plain data, by exact type: numpy's float64 is a float too, and would not load."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, tensors):
        return
    if kind in (list, tuple):
        for i, entry in enumerate(value):
            _insist_plain(f"{key}[{i}]", entry, tensors)
    elif kind in (dict, OrderedDict):
        for name, entry in value.items():
            _insist_plain(f"{key} key", name, tensors)
            _insist_plain(f"{key}.{name}", entry, tensors)
    else:
        raise TypeError(f"{key}: must be a tensor or plain data, not {kind.__module__}.{kind.__name__}")


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    """Return all checkpoints with their numbers, newest first."""
    try:
        matches = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return []
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _is_intact(path: Path) -> bool:
    match = _NAME.fullmatch(path.name)
    try:
        return match is not None and digest(path.read_bytes()) == match[2]
    except OSError:
        return False
