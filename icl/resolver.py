"""`${at:smoke,laptop,paper}` in a config: the value for the scale in force.

OmegaConf knows it as soon as both it and icl are imported, in whatever order, so that a notebook's own Hydra
resolves the configs of icl. To import OmegaConf here would take ten times as long as `icl --help` does.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from icl.errors import InputError, one_of

SCALES = ("smoke", "laptop", "paper")


def register() -> None:
    """With OmegaConf."""
    from omegaconf import OmegaConf

    OmegaConf.register_new_resolver("at", at, replace=True)


def at(*values: Any, _root_: Any) -> Any:
    """The value for the scale in force, which is the config's `scale`."""
    scale = one_of("scale", _root_.get("scale", "laptop"), SCALES)
    if len(values) != len(SCALES):
        raise InputError(
            f"${{at:...}} has {len(values)} values, must have one for each of {', '.join(SCALES)}"
        )
    value = values[SCALES.index(scale)]
    if not isinstance(value, list | dict):
        return value
    from omegaconf import OmegaConf

    return OmegaConf.create(value)


class _OnceThere:
    """Among the finders of modules until OmegaConf is looked for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "omegaconf":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "omegaconf" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _OnceThere())  # type: ignore[arg-type]
