"""A composed config with other values of a few keys, without Hydra and, where no other value can follow from
these, without resolving the rest again: of a sweep's thousands of configs each takes a moment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from icl.config.beside import as_typed
from icl.config.compose import Composed, resolve_without_hydra

_RESOLVERS = (
    "at",
    "oc.env",
    "oc.select",
)  # whose values follow from what is written, and for `at` from scale
_EXPRESSION = re.compile(r"\$\{([^${}]*)\}")
_RESOLVER = re.compile(r"\s*([\w.]+)\s*:")


class OverridableConfig:
    """`config` was composed with some value for each of `keys`."""

    def __init__(self, config: DictConfig, keys: Sequence[str]) -> None:
        self.config = config
        own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        written = OmegaConf.to_container(own)
        self._resolved = None if _may_follow(written, keys) else resolve_without_hydra(config)

    def __call__(self, values: Sequence[Override]) -> Composed:
        if self._resolved is not None:
            settings = _copied(self._resolved.settings)
            if all(_put(settings, value) for value in values):
                return replace(self._resolved, settings=settings)
        ConfigLoaderImpl._apply_overrides_to_config(list(values), self.config)
        return resolve_without_hydra(self.config)


def _may_follow(written: Any, keys: Sequence[str]) -> bool:
    """Return whether any value may depend on one of `keys`, judged by the names in its expressions."""
    names = {name for key in keys for name in key.split(".")}
    return any(_may_name(text, names) for text in _expressions(written))


def _may_name(text: str, names: set[str]) -> bool:
    if "${" in _EXPRESSION.sub("", text):  # one within another: what it names is not known before
        return True
    for inner in _EXPRESSION.findall(text):
        words, resolver = set(re.findall(r"\w+", inner)), _RESOLVER.match(inner)
        if not words or words & names or (resolver and resolver[1] not in _RESOLVERS):
            return True
        if resolver and resolver[1] == "at" and "scale" in names:
            return True
    return False


def _expressions(node: Any) -> Iterator[str]:
    if isinstance(node, str) and "${" in node:
        yield node
    elif isinstance(node, Mapping | list):
        for entry in node.values() if isinstance(node, Mapping) else node:
            yield from _expressions(entry)


def _put(settings: dict[str, Any], override: Override) -> bool:
    """Set a plain value as OmegaConf would; return whether that was possible."""
    value = override.value()
    *folders, name = as_typed(override.key_or_group).split(".")
    node: Any = settings
    for folder in folders:
        node = node.get(folder) if isinstance(node, dict) else None
    known = isinstance(node, dict) and name in node and not isinstance(node[name], dict)
    if not known or any(_expressions(value)) or value == "???":
        return False
    node[name] = _copied(value)
    return True


def _copied(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copied(entry) for key, entry in node.items()}
    return [_copied(entry) for entry in node] if isinstance(node, list) else node
