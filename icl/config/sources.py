"""The folders of configs as a source of Hydra's, with two habits of icl.

What an experiment sets for one option of a group belongs to that option: where another is chosen it is left
out. And some keys may stand in files within a group whose class does not take them (icl.config.nested_keys):
they are moved out of it. Each file is parsed once.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.config_search_path import ConfigSearchPath, SearchPathElement
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from icl.config.nested_keys import COMPOSED_KEYS
from icl.config.search_path import LOCAL as LOCAL_FILE
from icl.config.search_path import SCHEME, insist_on_folders
from icl.errors import InputError

_REFERENCE = re.compile(r"[&*]\w")
_MOST_VALUES = 100_000  # of a file
_MAIN = "main"  # Hydra's name for the folder it is initialized with
LOCAL = LOCAL_FILE.with_suffix("").as_posix()
_folders: Sequence[Path] = ()  # of the session in progress; other programs' Hydra keeps its own
_dropped: frozenset[str] = frozenset()
_left_out: list[str] = []


class ConfigFiles(ConfigSource):
    """A folder of YAML files."""

    @staticmethod
    def scheme() -> str:
        return SCHEME

    def load_config(self, config_path: str) -> ConfigResult:
        path = self._file(config_path)
        try:
            found = path.stat()
        except OSError:
            raise ConfigLoadError(f"Config not found : {path}") from None
        parsed, header = _parsed(str(path), (found.st_ino, found.st_mtime_ns, found.st_size))
        config: Any = copy.deepcopy(parsed)
        if OmegaConf.is_dict(config):
            insist_on_folders(OmegaConf.select(config, "hydra.searchpath"))
            config, header = _adapted(config_path, config, dict(header))
        return ConfigResult(self.provider, self.full_path(), config, dict(header))

    def available(self) -> bool:
        return self.is_group("")

    def is_group(self, config_path: str) -> bool:
        return Path(self.path, config_path).is_dir()

    def is_config(self, config_path: str) -> bool:
        shipped = self.provider == _MAIN  # a checkout's own counts where one works in it
        return self._file(config_path).is_file() and not (shipped and config_path == LOCAL)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        names: set[str] = set()
        for path in Path(self.path, config_path).iterdir():
            if path.is_dir() and results_filter in (None, ObjectType.GROUP) and path.name != "__pycache__":
                names.add(path.name)
            elif path.suffix == ".yaml" and results_filter in (None, ObjectType.CONFIG):
                names.add(path.stem)
        return sorted(names)

    def _file(self, config_path: str) -> Path:
        return Path(self.path, config_path if config_path.endswith(".yaml") else f"{config_path}.yaml")


class LocalFile(ConfigFiles):
    """conf/local/default.yaml of the working directory, and nothing else of that folder."""

    @staticmethod
    def scheme() -> str:
        return f"{SCHEME}-local"

    def available(self) -> bool:
        return True  # as an empty folder, where there is none

    def is_config(self, config_path: str) -> bool:
        return config_path == LOCAL and self._file(config_path).is_file()

    def is_group(self, config_path: str) -> bool:
        return LOCAL.startswith(config_path) and super().is_group(config_path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        return [Path(LOCAL).name] if self.is_group(config_path) and config_path else []


class Folders(SearchPathPlugin):
    """Makes the folders of the session in progress Hydra's search path; the last one wins."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        if not _folders:
            return
        path = search_path.get_path()
        at = next(i for i, element in enumerate(path) if element.provider == _MAIN)
        names = ["icl"] * (len(_folders) - 1) + [_MAIN]
        path[at : at + 1] = [
            *(
                SearchPathElement(name, f"{SCHEME}://{folder}")
                for name, folder in zip(names, reversed(_folders), strict=True)
            ),
            SearchPathElement("local", f"{LocalFile.scheme()}://{Path('conf').absolute()}"),
        ]


@contextlib.contextmanager
def searched(folders: Sequence[Path]) -> Iterator[None]:
    """Let Hydra, where it is initialized within, search these folders."""
    global _folders
    for plugin in (ConfigFiles, LocalFile, Folders):
        Plugins.instance().register(plugin)
    before, _folders = _folders, folders
    try:
        yield
    finally:
        _folders = before


@contextlib.contextmanager
def settings_dropped(groups: frozenset[str]) -> Iterator[list[str]]:
    """Leave out what experiments set for these groups; yield the list of the keys left out."""
    global _dropped, _left_out
    before = _dropped, _left_out
    _dropped, _left_out = groups, []
    try:
        yield _left_out
    finally:
        _dropped, _left_out = before


@functools.lru_cache(maxsize=1024)
def _parsed(path: str, stamp: tuple[int, ...]) -> tuple[Any, tuple[tuple[str, str | None], ...]]:
    """Return a file's config and its header, `# @package ...`."""
    text = Path(path).read_text(encoding="utf-8")
    if _REFERENCE.search(text):
        _insist_on_few_values(path, text)
    header = ConfigSource._get_header_dict(text[:512])  # of a source's own interface
    return OmegaConf.load(io.StringIO(text)), tuple(header.items())


def _insist_on_few_values(path: str, text: str) -> None:
    """Refuse a file whose aliases stand for more values than anybody writes: each is copied."""
    counts: dict[int, float] = {}

    def count(node: Any) -> float:
        if id(node) not in counts:
            counts[id(node)] = math.inf  # of what contains itself
            inner = node.value if isinstance(node.value, list) else []
            parts = [part for entry in inner for part in (entry if isinstance(entry, tuple) else (entry,))]
            counts[id(node)] = 1 + sum(map(count, parts))
        return counts[id(node)]

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = 0.0 if root is None else count(root)
    except yaml.YAMLError:  # OmegaConf says what is wrong
        return
    if values > _MOST_VALUES:
        raise InputError(f"{path}: its aliases (&x, *x) stand for more than {_MOST_VALUES:,} values")


def _adapted(config_path: str, config: Any, header: dict[str, str | None]) -> tuple[Any, Any]:
    group = config_path.partition("/")[0] if "/" in config_path else ""
    package = header["package"] if header["package"] is not None else group
    package = "" if package == "_global_" else package.removeprefix("_global_.")
    if group == "model" and OmegaConf.is_interpolation(config, "dim"):
        del config["dim"]  # it is there for users who instantiate without icl
    root = _at_its_place(config, package)
    if root is not None and move_nested(root):
        config, header = root, {**header, "package": "_global_"}
    if group == "experiment":
        for name in sorted(_dropped & set(config)):
            leaves = _leaves(name, config._get_node(name))
            _left_out.extend(leaf for leaf in leaves if leaf not in _left_out)
            del config[name]
    return config, header


def as_value(folders: Sequence[Path], group: str, option: str) -> Any:
    """Return what an option's file adds to a config; None where only Hydra can, as with a defaults list."""
    config_path = f"{group}/{option}"
    for folder in reversed(folders):
        source = ConfigFiles("icl", f"{SCHEME}://{folder}")
        if source.is_config(config_path):
            loaded = source.load_config(config_path)
            package = loaded.header["package"] or group
            config: Any = loaded.config
            if not OmegaConf.is_dict(config) or "defaults" in config or package not in (group, "_global_"):
                return None
            root = config if package == "_global_" else OmegaConf.create({package: config})
            own = {group} | {key for user, key in COMPOSED_KEYS.items() if user.startswith(f"{group}.")}
            return root if set(root) <= own else None
    return None


def _at_its_place(config: DictConfig, package: str) -> Any:
    """Return the config as it is merged; None where its defaults list depends on its package."""
    if not package:
        return config
    if "defaults" in config or package.partition(".")[0] not in {
        key.partition(".")[0] for key in COMPOSED_KEYS
    }:
        return None
    root = OmegaConf.create()
    OmegaConf.update(root, package, copy.deepcopy(config), merge=False)
    return root


def move_nested(config: Any) -> bool:
    """Move keys out of the groups that do not take them; return whether there were any."""
    moved = False
    for user, key in COMPOSED_KEYS.items():
        group, _, name = user.partition(".")
        node = config._get_node(group)
        if OmegaConf.is_dict(node) and not node._is_none() and name in node:
            OmegaConf.update(config, key, node._get_node(name), merge=True, force_add=True)
            del node[name]
            moved = True
    return moved


def _leaves(key: str, node: Any) -> list[str]:
    if not OmegaConf.is_dict(node) or node._is_interpolation() or node._is_none():
        return [key]
    return [leaf for name in node for leaf in _leaves(f"{key}.{name}", node._get_node(name))]
