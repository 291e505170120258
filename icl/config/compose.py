"""Hydra's compose, with its errors in one line each. What comes out is plain: no config goes further.

Nothing global is left changed, so that a notebook's or another program's own Hydra is not disturbed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from hydra.version import setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from icl.config.beside import as_settings, as_typed
from icl.config.hydra_policy import validate_hydra
from icl.config.loader import LEFT_OUT, MAY_NOT_FIT, Loader, parsed
from icl.config.search_path import ConfigDirs, conf_dir
from icl.errors import InputError, nearest
from icl.resolver import register as register_resolvers

ERRORS = (HydraException, OmegaConfBaseException)
_BRING = dict.fromkeys(("submitit_local", "submitit_slurm"), "'icl[slurm]'") | {
    "ax": "hydra-ax-sweeper",
    "nevergrad": "hydra-nevergrad-sweeper",
    "ray": "hydra-ray-launcher",
    "rq": "hydra-rq-launcher",
}
_NO_OPTION = "Config group override must be"  # what Hydra says of `model=17`
_lock = threading.RLock()  # Hydra's state is the process's


@dataclass(frozen=True)
class Composed:
    """A resolved config: `settings`, which option `choices` names of each group, and if -m was meant.
    `left_out` are keys of the experiment that belong to other options than those chosen; `may_not_fit` were
    set for another task or model than is chosen."""

    settings: dict[str, Any]
    choices: Mapping[str, str | None]
    multirun: bool = False
    left_out: tuple[str, ...] = ()
    may_not_fit: tuple[str, ...] = ()


def compose(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
    """conf/VERB.yaml with `overrides`."""
    with hydra_session(configs, verb, overrides) as hydra:
        config = with_values(configs, verb, overrides)
        return _composed(hydra, verb, overrides) if config is None else resolve(config)


def with_values(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> DictConfig | None:
    """The config that Hydra composes, its own part with it, in a fraction of its time where this process has
    seen one with the same options: values are set as Hydra sets them. None where Hydra's own part has a say.
    Within `hydra_session`."""
    if any("${hydra" in override for override in overrides):
        return None
    with wrap_hydra_errors():
        loader: Any = GlobalHydra.instance().config_loader()
        given = parsed(loader, overrides)
        deleted = tuple(f"{one.key_or_group}." for one in given if one.is_delete())  # Hydra keeps the order
        values = [
            one
            for one in given
            if not _selects_group(one, loader) and not f"{one.key_or_group}.".startswith(deleted)
        ]
        options = tuple(str(one.input_line) for one in given if one not in values)
        base = _with_options(configs, _state(configs), verb, options)
        if base is None:
            return None
        config = copy.deepcopy(base)
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
        choices, typed = config.hydra.runtime.choices, {one.key_or_group for one in values}
        for name in (LEFT_OUT, MAY_NOT_FIT):
            if name in choices:
                choices[name] = [key for key in choices[name] if key not in typed]
        own, job = [one for one in given if not one.is_hydra_override()], config.hydra.job
        config.hydra.overrides.task = [one.input_line for one in own]
        job.override_dirname = get_overrides_dirname(own, **job.config.override_dirname)
        config.hydra.runtime.cwd = os.getcwd()
        return config


def _selects_group(override: Override, loader: ConfigLoaderImpl) -> bool:
    """Return whether Hydra has to see the override: it selects an option, deletes, is for Hydra or wrong."""
    is_group = loader.repository.group_exists(override.key_or_group)
    is_for_hydra = override.is_hydra_override() or override.is_sweep_override() or override.is_delete()
    return is_for_hydra or (is_group and not isinstance(override.value(), dict))


@functools.lru_cache(maxsize=128)
def _with_options(
    configs: ConfigDirs, state: tuple[Any, ...], verb: str, options: tuple[str, ...]
) -> DictConfig | None:
    loader: Any = GlobalHydra.instance().config_loader()
    config = loader.load_configuration(verb, list(options), RunMode.RUN)
    written: Any = OmegaConf.to_container(config)
    hydras = written.pop("hydra")
    speaks = hydras["searchpath"] or hydras["job"]["env_copy"] or "${hydra" in str(written)
    return None if speaks else config


def _state(configs: ConfigDirs) -> tuple[Any, ...]:
    """Return the state of the files and of the variables they name, on which composed configs depend."""
    stats = ((str(path), path.stat()) for path, _ in configs.files())
    files = tuple((path, found.st_mtime_ns, found.st_size) for path, found in stats)
    return files, tuple((name, os.environ.get(name)) for name in _named_in(files))


@functools.lru_cache(maxsize=1)
def _named_in(files: tuple[tuple[str, int, int], ...]) -> list[str]:
    texts = (Path(path).read_text(encoding="utf-8") for path, *_ in files)
    return sorted({name for text in texts for name in re.findall(r"oc\.env:\s*(\w+)", text)})


def multirun_meant(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> bool:
    """Return whether hydra.mode is MULTIRUN, which an experiment may set too: then a,b are several values."""
    with hydra_session(configs, verb, overrides) as hydra:
        return _is_multirun(hydra.get_mode(verb, list(overrides)))


def resolve(cfg: DictConfig) -> Composed:
    """A config with Hydra's own part still in it."""
    with hydra_config_set(cfg):
        validate_hydra(cfg)
        return resolve_without_hydra(cfg)


def resolve_without_hydra(cfg: DictConfig) -> Composed:
    """Such a config, where no value speaks of Hydra's own part or that is in force."""
    settings = {str(key): _resolved(cfg, str(key)) for key in cfg if key != "hydra"}
    return _of(settings, cfg.hydra.runtime.choices, _is_multirun(cfg.hydra.mode))


def _of(settings: dict[str, Any], chosen: Any, multirun: bool = False) -> Composed:
    choices: Any = OmegaConf.to_container(OmegaConf.create(chosen))
    left_out, may_not_fit = (tuple(choices.pop(name, ())) for name in (LEFT_OUT, MAY_NOT_FIT))
    return Composed(as_settings(settings), choices, multirun, left_out, may_not_fit)


def _resolved(cfg: DictConfig, key: str) -> Any:
    value = "???" if OmegaConf.is_missing(cfg, key) else cfg[key]
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


@contextlib.contextmanager
def hydra_config_set(cfg: DictConfig) -> Iterator[None]:
    """Install `cfg` as HydraConfig, which ${hydra:...} reads."""
    held = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(cfg)
    try:
        yield
    finally:
        HydraConfig.instance().cfg = held


def resolve_in_job(cfg: DictConfig) -> Composed:
    """Resolve the config a launcher hands to a job, whose Hydra part is HydraConfig."""
    register_resolvers()  # a worker process starts without them
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return _of(settings, HydraConfig.get().runtime.choices)


def _composed(hydra: Hydra, verb: str, overrides: Sequence[str]) -> Composed:
    with wrap_hydra_errors():
        config = hydra.compose_config(verb, list(overrides), RunMode.RUN)
    return resolve(config)


@contextlib.contextmanager
def wrap_hydra_errors() -> Iterator[None]:
    """Turn any other exception during composition into an InputError."""
    try:
        yield
    except (*ERRORS, InputError, RecursionError):
        raise
    except Exception as error:
        if str(error).startswith(_NO_OPTION):  # whoever knows the options says it better
            raise
        raise InputError(f"no config can be composed of this ({type(error).__name__}: {error})") from error


@contextlib.contextmanager
def hydra_session(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Iterator[Hydra]:
    """Hydra over these configs, to be asked about `overrides`; what it has against them is one line."""
    try:
        with _hydra_session(configs, verb) as hydra:
            yield hydra
    except ERRORS as error:
        raise InputError(explain(configs, verb, overrides, error)) from error
    except RecursionError:
        raise InputError("a value is nested too deeply to be read") from None
    except ValueError as error:
        if str(error).startswith(_NO_OPTION):
            for key, _, value in (override.lstrip("+").partition("=") for override in overrides):
                if key in configs.groups:
                    configs.one_option(key, value)
            raise InputError(str(error)) from error
        raise


@contextlib.contextmanager
def _hydra_session(configs: ConfigDirs, verb: str) -> Iterator[Hydra]:
    """Set the process's own Hydra state aside meanwhile."""
    register_resolvers()
    setbase("1.3")
    search = create_config_search_path(str(conf_dir()))
    for folder in configs.folders[1:]:
        search.prepend("icl", f"file://{folder}", SearchPathQuery(provider="schema"))
    with _lock:
        held, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        GlobalHydra.instance().clear()
        try:
            hydra = Hydra.create_main_hydra2(f"icl {verb}", search)
            hydra.config_loader = Loader(hydra.config_loader)  # type: ignore[arg-type]
            with _cached_file_reads(hydra):
                yield hydra
        finally:
            HydraConfig.instance().cfg = config  # a launcher has left its last job's
            GlobalHydra.instance().clear()
            if held is not None:
                GlobalHydra.instance().initialize(held)


_read: dict[tuple[str, ...], tuple[tuple[int, ...], Any]] = {}  # as it was when, and what Hydra made of it


@contextlib.contextmanager
def _cached_file_reads(hydra: Hydra) -> Iterator[None]:
    """Parsing is a third of composing, and a process composes many configs of the same files."""
    loader: Any = hydra.config_loader
    source = next(type(one) for one in loader.repository.get_sources() if one.scheme() == "file")
    load = source.load_config

    def load_config(self: Any, config_path: str) -> Any:
        try:
            found = os.stat(os.path.join(self.path, self._normalize_file_name(config_path)))
        except OSError:
            return load(self, config_path)
        key, stamp = (self.provider, self.path, config_path), (found.st_ino, found.st_mtime_ns, found.st_size)
        if key not in _read or _read[key][0] != stamp:
            _read[key] = stamp, load(self, config_path)
        return copy.deepcopy(_read[key][1])

    source.load_config = load_config
    try:
        yield
    finally:
        source.load_config = load


def _is_multirun(mode: Any) -> bool:
    return getattr(mode, "name", mode) == RunMode.MULTIRUN.name


def explain(configs: ConfigDirs, verb: str, overrides: Sequence[str], error: Exception) -> str:
    """One line for an error of Hydra or OmegaConf, with the nearest choice where there is one."""
    text, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:  # of a value that a resolver refused
        if isinstance(cause, InputError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, option = _group_and_option(error.missing_cfg_file)
        missing = _not_installed(group, option)
        if missing is not None:
            return missing
        try:
            configs.one_option(group, option)
        except InputError as complaint:
            return str(complaint)
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as an override; quote lists and strings for the shell"
    unknown = re.search(r"Could not override '([^']+)'", text) or re.search(
        r"Key '([^']+)' is not in struct", text
    )
    unknown = unknown or re.search(r"Could not (?:override|append|delete)[^']*'?([\w/@.]+)'?", text)
    if unknown:
        path = re.search(r"full_key: (\S+)", text)
        key = as_typed((path[1] if path else unknown[1]).removeprefix("/"))
        known = [name for name in _keys(configs, verb, overrides) if name != key]
        if key.startswith(("trainer.", "callbacks.")):  # groups that take what they do not list
            return f"{key}: not in the config{nearest(key, known)} (+{key}=... adds it)"
        return f"{key}: no such key or group{nearest(key, known)} (icl {verb} --help shows them)"
    many = re.search(r"(?:argument|parameters) '([^']+)'", text)
    if many and ("Ambiguous value" in text or "requires --multirun" in text):
        return f"{many[1]}: several values need -m, one list needs [ ]"
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1]) if lines else type(cause).__name__


def _group_and_option(path: str) -> tuple[str, str]:
    """Our options are nested, experiment=ahn/theorem3; with Hydra's the groups are, hydra/launcher=joblib."""
    group, _, option = path.rpartition("/") if path.startswith("hydra/") else path.partition("/")
    return group, option


def _not_installed(group: str, option: str) -> str | None:
    """Return the package that a launcher or sweeper of Hydra's needs, if it is missing."""
    kind = group.removeprefix("hydra/")
    if kind not in ("launcher", "sweeper"):
        return None
    if option == "optuna":
        ours = "hydra/sweeper=search search.method=bayes does its work (pip install 'icl[optuna]')"
        return f"{group}=optuna: hydra-optuna-sweeper needs an optuna that is too old here; {ours}"
    if option in _BRING:
        return f"{group}={option}: is not installed; pip install {_BRING[option]}"
    names = ConfigStore.instance().list(group)
    here = sorted({name.removesuffix(".yaml") for name in names if not name.startswith("_")})
    return f"{group}={option}: no such {kind} is installed{nearest(option, here)} (one of: {', '.join(here)})"


def _keys(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> list[str]:
    """The keys of the config with the groups as chosen: what a misspelt key could have meant."""
    groups = configs.groups
    for kept in ([o for o in overrides if o.partition("=")[0].lstrip("+") in groups], []):
        with contextlib.suppress(*ERRORS), _hydra_session(configs, verb) as hydra:
            return [*leaves(_composed(hydra, verb, kept).settings), *groups]
    return sorted(groups)


def leaves(node: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of everything in nested settings."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield f"{prefix}{name}"
            yield from leaves(value, f"{prefix}{name}.")
