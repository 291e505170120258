"""The statements of a user's own file."""

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any

from icl.checks.statement import Statement
from icl.errors import InputError, nearest, nearest_key


def statements_of(path: Path) -> list[type[Statement]]:
    """Return the statements that a file defines, in its order."""
    if not path.is_file():
        raise InputError(f"{path}: no such file (icl check new prints one to begin with)")
    spec = importlib.util.spec_from_file_location(f"icl_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    sys.path.append(str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{path}{line_of(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    found = _defined(module)
    if not found:
        raise InputError(f"{path}: no Statement with a measure (icl check new prints a file to begin with)")
    for cls in found:
        if "__dataclass_fields__" not in vars(cls):
            raise InputError(f"{path}: {cls.__name__}: @dataclass is missing above the class")
    return found


def meant(place: str) -> tuple[dict[str, type[Statement]], str, str]:
    """Return the statements of a file, or one of a package, by the id of their records; the root of their
    code, and a digest of a file's content."""
    if not place.endswith(".py"):
        classes = installed()
        if place not in classes:
            known = ", ".join(classes)
            raise InputError(f"{place}: no such statement (one of: {known}){nearest(place, classes)}")
        return {place: classes[place]}, classes[place].__module__, ""
    path = Path(place)
    found = {f"own/{path.stem}/{cls.__name__}": cls for cls in statements_of(path)}
    return found, str(path.absolute()), hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def settings_of(one: Statement) -> dict[str, Any]:
    settings = {f.name: getattr(one, f.name) for f in fields(one)}
    return {k: v for k, v in settings.items() if v is not None or k not in ("seed", "samples")}


def installed() -> dict[str, type[Statement]]:
    """Return the statements of the modules that installed packages name as `icl.statements`, by
    NAME/CLASS."""
    found: dict[str, type[Statement]] = {}
    for entry in entry_points(group="icl.statements"):
        try:
            found |= {f"{entry.name}/{cls.__name__}": cls for cls in _defined(entry.load())}
        except Exception as error:
            raise InputError(f"{entry.value}: {type(error).__name__}: {error}") from error
    return found


def _defined(module: ModuleType) -> list[type[Statement]]:
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    own = [cls for cls in classes if issubclass(cls, Statement) and cls.__module__ == module.__name__]
    return [cls for cls in own if not isabstract(cls)]


def with_settings(
    statements: list[type[Statement]], settings: Mapping[str, Any], path: str
) -> list[Statement]:
    """Return the statements, each with those of the settings that it has."""
    names = {cls: [f.name for f in fields(cls)] for cls in statements}
    known = list(dict.fromkeys(name for of_one in names.values() for name in of_one))
    for name in settings:
        if name not in known:
            listed = ", ".join(known)
            raise InputError(f"{name}: no setting of {path} ({listed}){nearest_key(name, known)}")
    return [cls(**{k: v for k, v in settings.items() if k in names[cls]}) for cls in statements]


def line_of(error: BaseException, path: Path) -> str:
    """Return `, line N` of a file where an error arose."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f", line {line}" if line else ""
