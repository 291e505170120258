"""Hydra's private API, all of it that icl uses. Where a version of Hydra lacks a part, there is another way:
configs are then composed by Hydra from all overrides at once, which takes longer and gives the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig


def value_setter() -> Callable[[Sequence[Override], DictConfig], None] | None:
    """Return Hydra's function that sets values in a composed config, where there is one."""
    with contextlib.suppress(ImportError, AttributeError):
        from hydra._internal.config_loader_impl import ConfigLoaderImpl

        apply = ConfigLoaderImpl._apply_overrides_to_config
        return lambda overrides, config: apply(list(overrides), config)
    return None


def override_dirname(overrides: Sequence[Override], job: DictConfig) -> str | None:
    """Return hydra.job.override_dirname, which Hydra 1.4 no longer has."""
    if "override_dirname" not in job:
        return None
    with contextlib.suppress(ImportError):
        from hydra._internal.config_loader_impl import get_overrides_dirname

        return get_overrides_dirname(list(overrides), **job.config.override_dirname)
    return None


class _NoCallbacks:
    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda **_: None


def callbacks_of(config: DictConfig) -> Any:
    """Return the hydra.callbacks of a config."""
    try:
        from hydra._internal.callbacks import Callbacks
    except ImportError:
        return _NoCallbacks()
    return Callbacks(config)
