"""Objects from settings.

`instantiate` is the only function that turns a `_target_` into an object, and only of allowed packages;
components take typed arguments and never see a config.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from icl.config import allowed_packages
from icl.errors import InputError, nearest

T = TypeVar("T")
_HYDRAS_OWN = ("_partial_", "_args_", "_recursive_", "_convert_")


def allowed_target(key: str, name: Any) -> str:
    """`name` if it lies in an allowed package, as that package has it."""
    name = allowed_packages.canonical(name) if isinstance(name, str) else name
    if not isinstance(name, str) or not allowed_packages.is_allowed(name) or "._" in name:
        known = ", ".join(allowed_packages.allowed())
        raise InputError(
            f"{key}._target_={name}: must be in one of {known} (ICL_PACKAGES=mylab adds a package)"
        )
    return name


def target_of(key: str, node: Mapping[str, Any]) -> str:
    """Return the name of the class that a config node describes; its package must be allowed."""
    if "_target_" not in node:
        raise InputError(f"{key}: has no _target_; choose one of the group's options")
    for name in _HYDRAS_OWN:
        if name in node:
            raise InputError(
                f"{key}.{name}: leave it out; icl builds the parts itself, each once it knows the others"
            )
    for name, value in node.items():
        if isinstance(value, Mapping) and "_target_" in value:
            target_of(f"{key}.{name}", value)
    return allowed_target(key, node["_target_"])


def target_class(key: str, name: Any) -> type:
    """Return the class that a `_target_` names."""
    name = allowed_target(key, name)
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:  # the last of a name without a dot
        raise InputError(f"{key}._target_={name}: cannot be imported ({error})") from None
    is_part = isinstance(found, type) and not issubclass(found, BaseException)
    if not is_part or not allowed_packages.is_own(name, found.__module__):
        raise InputError(f"{key}._target_={name}: is not a class that a config may build")
    return found


def instantiate(key: str, node: Mapping[str, Any], **given: Any) -> Any:
    """Build the object that a config node describes; `given` are arguments that other nodes supply."""
    cls = target_class(key, target_of(key, node))
    settings = {k: _built(f"{key}.{k}", v) for k, v in node.items() if k != "_target_"}
    parameters = inspect.signature(cls).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in settings:
        if name not in parameters and not takes_any:
            raise InputError(f"{key}.{name}: {cls.__name__} has no such setting{nearest(name, parameters)}")
    required = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    for name in required:
        if name not in settings and name not in given:
            raise InputError(f"{key}.{name}: missing")
    try:
        return cls(**settings, **{k: v for k, v in given.items() if k in parameters})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{key}: {cls.__name__} refuses its settings: {error}") from error


def _built(key: str, value: Any) -> Any:
    return instantiate(key, value) if isinstance(value, Mapping) and "_target_" in value else value


def settings_of(cls: type[T], key: str, node: Mapping[str, Any]) -> T:
    """Build a dataclass of settings from `node`, every key of which is a field."""
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    for name in node:
        if name not in known:
            raise InputError(f"{key}.{name}: no such key; must be one of {', '.join(known)}")
    try:
        return cls(**node)
    except TypeError as error:
        raise InputError(f"{key}: {error}") from None
