"""Every config on disk, with the facts that the conformance tests read off it."""

import copy
import functools
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra.types import RunMode

from icl.config.compose import hydra_session, resolve
from icl.config.search_path import ConfigDirs, conf_dir
from icl.resolver import SCALES

NOT_THE_CLASS_OWN = {
    "_target_",
    "caption",
    "expected",
    "weights",
    "schedule",
    "path",
    "activation",
}


@dataclass(frozen=True)
class Config:
    """A YAML file: `group` is the Hydra group, `name` its option."""

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

    def composed(self, scale: str = "laptop") -> dict[str, Any]:
        """Return the group's node under the verb it belongs to; of an experiment the whole config."""
        settings = copy.deepcopy(_composed(self.group, self.name)[scale])
        if self.group == "experiment":
            return settings
        node = settings[self.group]
        return {k: v for k, v in node.items() if v is not None or k not in ("seed", "samples")}


@functools.cache
def _composed(group: str, name: str) -> dict[str, dict[str, Any]]:
    """Compose by scale. Hydra's part, which is slow and knows no scale, is done once."""
    verb = group if group in ("check", "figure") else "train"
    found = {}
    with hydra_session(ConfigDirs(), verb, []) as loader:
        cfg = loader.load_configuration(verb, [f"{group}={name}"], RunMode.RUN)
        for scale in SCALES:
            one = copy.deepcopy(cfg)
            one.scale = scale
            found[scale] = resolve(one, loader).settings
    return found


def configs(*groups: str) -> list[Config]:
    return [
        Config(group, path.relative_to(conf_dir() / group).with_suffix("").as_posix())
        for group in groups
        for path in sorted((conf_dir() / group).rglob("*.yaml"))
    ]


def targets(node: Any, key: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return every part of a config that is to become an object, with its key."""
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
