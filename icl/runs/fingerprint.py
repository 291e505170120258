"""What a record is filed under, and which source code it was made with."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import InputError


def fingerprint(scientific: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that depend on the values in `scientific` alone.

    The order of keys does not matter; 1 and 1.0, tuples and lists, numpy's numbers and Python's are the same.
    """
    text = json.dumps(_canonical("", scientific), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(key: str, value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            name: _canonical(f"{key}.{name}" if key else name, value[name]) for name in _names(key, value)
        }
    if isinstance(value, list | tuple):
        return [_canonical(f"{key}[{i}]", entry) for i, entry in enumerate(value)]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise InputError(f"{key}=nan: must be a number")
        return int(value) if value.is_integer() else float(value)
    raise TypeError(f"{key}: {type(value).__name__} has no place in a fingerprint")


def _names(key: str, mapping: Mapping[Any, Any]) -> list[str]:
    if not all(isinstance(name, str) for name in mapping):
        raise TypeError(f"{key or 'fingerprint'}: keys must be strings")
    return list(mapping)


def code_digest(packages: Sequence[str], extra_files: Iterable[str | Path] = ()) -> str:
    """Digest of the Python source of icl's named sub-packages (or modules) and of further files.

    It changes with any byte of source, and not with where the package lies, what is compiled, or the order of
    names. Computed once per process.
    """
    files = sorted(str(Path(file).absolute()) for file in extra_files)
    return _code_digest(tuple(sorted(set(packages))), tuple(files))


@functools.cache
def _code_digest(packages: tuple[str, ...], extra_files: tuple[str, ...]) -> str:
    spec = importlib.util.find_spec("icl")
    assert spec is not None and spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations)))
    parts = [part for name in packages for part in _sources(root, name)]
    parts += sorted((Path(file).name, Path(file).read_bytes()) for file in extra_files)
    digest = hashlib.sha256()
    for name, source in parts:
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()[:16]


def _sources(root: Path, name: str) -> list[tuple[str, bytes]]:
    folder, module = root / name, root / f"{name}.py"
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [module] if module.is_file() else []
    if not files:
        raise ValueError(f"icl has no package or module {name}")
    return [(file.relative_to(root).as_posix(), file.read_bytes()) for file in files]
