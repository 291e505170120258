"""Packages whose classes a config may name: ours, torch's optimizers, Lightning's, and those of packages let
in.

A package is let in by ICL_PACKAGES=mylab, or by installing it where it says in its own pyproject.toml

    [project.entry-points."icl.packages"]
    mylab = "mylab"

and then its folder mylab/conf counts beside ours, too. The list is made before any config is read, so that no
config can add to it. Nothing is imported, so that `icl list` stays fast.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

GROUP = "icl.packages"
_ALWAYS = ("icl", "torch.optim", "pytorch_lightning")
_UNIFIED = "lightning.pytorch."  # the same classes, made once more by another distribution
_BUILDING = ("pytorch_lightning.cli",)  # modules of classes that build whatever a config names
_fixed: tuple[str, ...] | None = None


def installed() -> tuple[str, ...]:
    """Return the names of installed packages that register themselves as icl.packages."""
    return _installed(tuple((place, _changed(place)) for place in sys.path))


def _changed(place: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(place or ".").st_mtime_ns
    return 0


@functools.lru_cache(maxsize=1)
def _installed(places: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Look the packages up again after an installation, which changes a folder of sys.path."""
    return tuple(sorted({entry.module for entry in importlib.metadata.entry_points(group=GROUP)}))


def named() -> tuple[str, ...]:
    """Return the packages that ICL_PACKAGES names."""
    names = os.environ.get("ICL_PACKAGES", "").replace(":", ",").split(",")
    return tuple(name.strip() for name in names if name.strip())


def allowed() -> tuple[str, ...]:
    """Return the packages that a `_target_` may come from: as frozen, or as installed now."""
    return (*_ALWAYS, *named(), *installed()) if _fixed is None else _fixed


def canonical(name: str) -> str:
    """Return the name under pytorch_lightning: its Trainer does not take the classes of the same
    names in lightning.pytorch."""
    return f"pytorch_lightning.{name.removeprefix(_UNIFIED)}" if name.startswith(_UNIFIED) else name


def is_allowed(name: str) -> bool:
    """Return whether the dotted `name` lies in an allowed package."""
    return _is_within(name, allowed())


def is_own(name: str, module: str) -> bool:
    """Return whether a class found under `name` and defined in `module` belongs to an allowed package, rather
    than being imported there. Classes that build others are refused."""
    return not _is_within(name, _ALWAYS) or (_is_within(module, allowed()) and module not in _BUILDING)


def _is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


@contextlib.contextmanager
def frozen_allowlist(packages: tuple[str, ...]) -> Iterator[None]:
    """Keep the list of allowed packages fixed while configs are read and jobs run."""
    global _fixed
    before, _fixed = _fixed, packages
    try:
        yield
    finally:
        _fixed = before


def conf_of(package: str) -> Path | None:
    """Return the folder of a package's configs, if it has one."""
    top, *inner = package.split(".")
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(top)
        for place in (spec and spec.submodule_search_locations) or []:
            folder = Path(place).joinpath(*inner, "conf").absolute()
            if folder.is_dir():
                return folder
    return None
