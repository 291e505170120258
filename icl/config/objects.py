"""Objects from settings.

`instantiate` is the only function that turns a `_target_` into an object; components take typed arguments
and never see a config.
"""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from icl.errors import InputError, nearest

_UNIFIED = "lightning.pytorch."


def target_of(key: str, node: Any) -> str:
    """Return the name of the class that a config node describes."""
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise InputError(f"{key}: has no _target_; choose one of the group's options")
    return str(node["_target_"])


def target_class(key: str, name: Any) -> type:
    """Return the class that a `_target_` names."""
    module, _, attribute = str(name).rpartition(".")
    if module.startswith(_UNIFIED):  # whose Trainer's classes are others than ours
        module = f"pytorch_lightning.{module.removeprefix(_UNIFIED)}"
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:  # the last of a name without a dot
        raise InputError(f"{key}._target_={name}: cannot be imported ({error})") from None
    if not isinstance(found, type):
        raise InputError(f"{key}._target_={name}: is not a class")
    return found


def instantiate(key: str, node: Mapping[str, Any], **given: Any) -> Any:
    """Build the object that a config node describes; `given` are arguments that other nodes supply."""
    cls = target_class(key, target_of(key, node))
    settings = {
        k: instantiate(f"{key}.{k}", v) if isinstance(v, Mapping) and "_target_" in v else v
        for k, v in node.items()
        if k != "_target_"
    }
    parameters = inspect.signature(cls).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in settings:
        if name not in parameters and not takes_any:
            raise InputError(f"{key}.{name}: {cls.__name__} has no such setting{nearest(name, parameters)}")
    try:
        return cls(**settings, **{k: v for k, v in given.items() if k in parameters})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{key}: {cls.__name__} refuses its settings: {error}") from error
