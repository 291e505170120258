"""Every config on disk, with what the conformance tests read off it."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from icl.config.compose import compose
from icl.config.places import Configs, conf_dir

SCALES = ("smoke", "laptop", "paper")
NOT_THE_CLASS_OWN = {"_target_", "expected", "weights", "schedule", "path", "activation"}


@dataclass(frozen=True)
class Config:
    """One YAML file: `group` is the Hydra group, `name` its option."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}={self.name}"

    @property
    def path(self) -> Path:
        return conf_dir() / self.group / f"{self.name}.yaml"

    @property
    def header(self) -> dict[str, str]:
        lines = self.path.read_text().splitlines()
        pairs = (line[1:].partition(":") for line in lines if line.startswith("#"))
        return {key.strip(): value.strip() for key, _, value in pairs}

    @property
    def own(self) -> Any:
        return yaml.safe_load(self.path.read_text())

    def composed(self, scale: str = "laptop", *overrides: str) -> dict[str, Any]:
        """The group's node under the verb it belongs to; of an experiment the whole config."""
        return copy.deepcopy(_composed(self.group, self.name, scale, overrides))


@functools.cache
def _composed(group: str, name: str, scale: str, overrides: tuple[str, ...]) -> dict[str, Any]:
    verb = group if group in ("check", "figure") else "train"
    cfg = compose(Configs(), verb, [f"{group}={name}", f"scale={scale}", *overrides]).settings
    return cfg if group == "experiment" else cfg[group]


def configs(*groups: str) -> list[Config]:
    return [
        Config(group, path.relative_to(conf_dir() / group).with_suffix("").as_posix())
        for group in groups
        for path in sorted((conf_dir() / group).rglob("*.yaml"))
    ]


def targets(node: Any, key: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every part of a config that is to become an object, with the key it stands under."""
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield key, node
        for name, entry in node.items():
            yield from targets(entry, f"{key}.{name}" if key else str(name))


def class_of(node: Mapping[str, Any]) -> Any:
    module, _, name = node["_target_"].rpartition(".")
    return getattr(importlib.import_module(module), name)


def parameters(cls: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)
