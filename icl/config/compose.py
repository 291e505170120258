"""Composition of configs by Hydra, once for each choice of options; values are set on what was composed.

What comes out is plain: no config goes further. Nothing global is left changed, so that a notebook's or
another program's own Hydra is not disturbed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hydra
from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.core.utils import JobRuntime
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from icl.config import hydra_private, sources
from icl.config.dims import dims_of
from icl.config.explain import ERRORS, explain, leaves
from icl.config.hydra_policy import validate_hydra
from icl.config.nested_keys import COMPOSED_KEYS, composed_key, nested_settings, user_key
from icl.config.search_path import SCHEME, ConfigDirs, conf_dir, insist_on_folders
from icl.errors import InputError
from icl.resolver import register as register_resolvers

_VERSION_BASE = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}  # later ones warn
FITTED = ("checks", "train.estimator", "train.batch", "train.coordinates")  # to a task and a model
MAY_NOT_FIT = "experiment/may_not_fit"  # which of these an experiment set for others than those chosen
LEFT_OUT = "experiment/left_out"  # where a config keeps what was left out, among its choices
_GROUPS = ("task", "model", "optimizer", "schedule", "callbacks")  # their options differ in settings
_FILE_IS_VALUE = ("check", "figure")  # groups of the verb of this name: one node, set by one file
_WITHOUT_CLIP, _CLIP = "torch.optim.LBFGS", "train.clip"
_NO_OPTION = "Config group override must be"  # what Hydra says of `model=17`
_KEPT = 128  # compositions
_SEARCHED = re.compile(r"\bfile(?=://)")
_lock = threading.RLock()  # Hydra's state is the process's


@dataclass(frozen=True)
class Composed:
    """A resolved config: `settings`, which option `choices` names of each group, and if -m was meant;
    `overrides` as they were typed, without Hydra's own.
    `left_out` are keys of the experiment that belong to other options than those chosen; `may_not_fit` were
    set for another task or model than is chosen."""

    settings: dict[str, Any]
    choices: Mapping[str, str | None]
    multirun: bool = False
    left_out: tuple[str, ...] = ()
    may_not_fit: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()


def compose(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
    """Compose conf/VERB.yaml with `overrides`."""
    try:
        with hydra_session(configs, verb, overrides) as composer:
            return composer.compose(verb, overrides)
    except InputError as error:
        if not _of_local_file(configs, str(error), overrides):
            raise
        raise InputError(f"{configs.local}: {error}") from None


def _of_local_file(configs: ConfigDirs, problem: str, overrides: Sequence[str]) -> bool:
    """Return whether what is wrong stands in conf/local/default.yaml and was not typed."""
    if configs.local is None:
        return False
    try:
        OmegaConf.load(configs.local)
    except Exception:
        return True  # it cannot be read
    key = re.split(r"[.:= ]", problem, maxsplit=1)[0]
    typed = {re.split(r"[.=]", override.lstrip("+~"), maxsplit=1)[0] for override in overrides}
    return key not in typed and bool(re.search(rf"\b{re.escape(key)}\s*:", configs.local.read_text("utf-8")))


def multirun_meant(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> bool:
    """Return whether hydra.mode is MULTIRUN, which an experiment may set too: then a,b are several values."""
    with (
        contextlib.suppress(Exception),
        _hydra_session(configs, verb) as composer,
    ):  # compose says what is wrong
        config = composer.load_configuration(
            verb, list(overrides), RunMode.MULTIRUN, validate_sweep_overrides=False
        )
        return _is_multirun(config.hydra.mode)
    return False


@dataclass(frozen=True)
class _Given:
    """An override as it was typed, as Hydra reads it, and as a composed config has it."""

    typed: str
    read: Override
    line: str
    follows: bool = False  # from an array that was typed, and was not typed itself

    @property
    def key(self) -> str:
        return str(self.read.key_or_group)


@functools.lru_cache(maxsize=4096)
def _parsed(typed: str) -> _Given:
    (read,) = OverridesParser.create().parse_overrides([typed])
    user, read.key_or_group = read.key_or_group, composed_key(read.key_or_group)
    if user == "optimizer.schedule" and read.type is OverrideType.CHANGE and not read.is_sweep_override():
        value = read.value()
        if not isinstance(value, dict | str | None):
            raise InputError(f"{user}={value}: must be a group of settings (schedule=... names one)")
    line = typed.replace(user, read.key_or_group, 1)
    return _Given(typed, read, line if user != "hydra.searchpath" else _SEARCHED.sub(SCHEME, typed))


@dataclass(frozen=True)
class _Split:
    """Overrides by what they need: Hydra (options), a file merged as a value, or a value set."""

    options: tuple[str, ...]
    values: tuple[_Given, ...]
    file: str | None


class _Base:
    """A config as Hydra composes it from options alone, before values are set on it."""

    def __init__(self, config: DictConfig, chosen_otherwise: frozenset[str], *, has_nested: bool) -> None:
        self.config = config
        self.chosen_otherwise = chosen_otherwise  # groups with another option than the experiment's own
        self.has_nested = (
            has_nested  # some file sets a key where the user writes it, and Hydra composed it there
        )
        self.resolved: dict[
            tuple[str, ...], Composed | None
        ] = {}  # by the values set first; None: wanted once
        self._may_follow: dict[tuple[str, ...], bool] = {}

    @functools.cached_property
    def _expressions(self) -> list[str]:
        own = OmegaConf.masked_copy(self.config, [str(key) for key in self.config if key != "hydra"])
        return list(_expressions(OmegaConf.to_container(own)))

    def may_follow(self, keys: tuple[str, ...]) -> bool:
        """Return whether any value may depend on one of `keys`, judged by the names in expressions."""
        if keys not in self._may_follow:
            names = {name for key in keys for name in key.split(".")}
            self._may_follow[keys] = any(_may_name(text, names) for text in self._expressions)
        return self._may_follow[keys]


@dataclass
class _Known:
    """A cache of composed configs, valid while config files and environment variables stay the same."""

    bases: dict[tuple[Any, ...], _Base] = field(default_factory=dict)
    groups: dict[str, bool] = field(default_factory=dict)


_known: dict[tuple[Any, ...], _Known] = {}


def forget() -> None:
    """Compose anew what is wanted next."""
    _known.clear()


class Composer(ConfigLoader):
    """A config loader for Hydra, its launchers and us. Hydra's own composes once for each choice of options;
    values are set, as Hydra sets them, on a copy."""

    def __init__(self, loader: ConfigLoader, configs: ConfigDirs) -> None:
        self._loader, self._configs = loader, configs
        self._state = _state(configs)

    def compose(self, verb: str, overrides: Sequence[str]) -> Composed:
        """Resolve Compose conf/VERB.yaml with `overrides`."""
        with _wrap_errors():
            given, split, base = self._read(verb, overrides, RunMode.RUN)
        plain = self._plain(verb, given, split, base)
        if plain is None:
            with _wrap_errors():
                config = self._with_values(verb, given, split, base, RunMode.RUN)
            plain = resolve(config)
        return replace(plain, overrides=tuple(o.typed for o in given if not o.read.is_hydra_override()))

    def _plain(self, verb: str, given: Sequence[_Given], split: _Split, base: _Base) -> Composed | None:
        """Set plain values, from which no other value can follow, on what the others resolve to, if these
        were wanted before. None where that cannot be done."""
        first = [one for one in split.values if base.may_follow((one.key,))]  # such as scale
        key = tuple(one.typed for one in first)
        if key not in base.resolved:
            while len(base.resolved) >= _KEPT:
                del base.resolved[next(iter(base.resolved))]
            base.resolved[key] = None
            return None
        if split.file is not None and (
            base.may_follow((verb,)) or any(_is_below(verb, one) for one in first)
        ):
            return None
        stored = base.resolved[key]
        if stored is None:
            part = [one for one in given if one in first or one not in split.values]
            plain = replace(split, values=tuple(first), file=None)
            try:
                stored = resolve(self._with_values(verb, part, plain, base, RunMode.RUN))
            except (InputError, *ERRORS):  # it may need the other values
                return None
            base.resolved[key] = stored
        values = [one for one in split.values if one not in first]
        settings = _copied(stored.settings)
        below = [one for one in values if _is_below(verb, one)]
        if not all(_put(settings, one.read) for one in values if one not in below):
            return None
        if split.file is not None:
            root = sources.as_value(self._configs.folders, verb, split.file)
            texts = list(_expressions(OmegaConf.to_container(root)))
            nested = [key for key, value in settings[verb].items() if isinstance(value, Mapping)]
            if set(nested) - _outside(verb) or not all(map(_OF_SCALE.fullmatch, texts)):
                return None
            of_file: Any = OmegaConf.to_container(
                OmegaConf.merge({"scale": settings["scale"]}, root), resolve=bool(texts)
            )
            del of_file["scale"]
            settings[verb] |= of_file.pop(verb) | {
                user_key(key).partition(".")[2]: value for key, value in of_file.items()
            }
        if not all(_put(settings, one.read) for one in below):
            return None
        typed = {one.key for one in given}
        return replace(
            stored,
            settings=settings,
            choices={**stored.choices, **({verb: split.file} if split.file else {})},
            left_out=tuple(key for key in stored.left_out if key not in typed),
            may_not_fit=tuple(key for key in stored.may_not_fit if key not in typed),
        )

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
        **more: Any,
    ) -> DictConfig:
        if config_name is None:  # for Hydra's own help
            return self._loader.load_configuration(None, overrides, run_mode, from_shell)
        with _wrap_errors():
            given, split, base = self._read(config_name, overrides, run_mode, validate_sweep_overrides)
            return self._with_values(config_name, given, split, base, run_mode, validate_sweep_overrides)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        overrides = [*master_config.hydra.overrides.hydra, *sweep_overrides]
        config = self.load_configuration(master_config.hydra.job.config_name, overrides, RunMode.RUN)
        OmegaConf.copy_cache(from_config=master_config, to_config=config)
        return config

    def get_search_path(self) -> Any:
        return self._loader.get_search_path()

    def get_sources(self) -> Any:
        return self._loader.get_sources()

    def list_groups(self, parent_name: str) -> list[str]:
        return self._loader.list_groups(parent_name)

    def get_group_options(self, group_name: str, *args: Any, **more: Any) -> list[str]:
        return self._loader.get_group_options(group_name, *args, **more)

    def compute_defaults_list(self, config_name: str | None, overrides: list[str], run_mode: RunMode) -> Any:
        return self._loader.compute_defaults_list(config_name, overrides, run_mode)

    def ensure_main_config_source_available(self) -> None:
        self._loader.ensure_main_config_source_available()  # type: ignore[attr-defined]

    def is_group(self, key: str) -> bool:
        groups = self._known.groups
        if key not in groups:
            groups[key] = bool(self._loader.get_group_options(key, results_filter=None))
        return groups[key]

    @property
    def _known(self) -> _Known:
        key = (self._configs, self._state)
        if key not in _known:
            _known.clear()
            _known[key] = _Known()
        return _known[key]

    def _read(
        self, verb: str, overrides: Sequence[str], mode: RunMode, validate: bool = True
    ) -> tuple[list[_Given], _Split, _Base]:
        """Return the overrides, those that follow from arrays among them, and what they need."""
        given = [_parsed(override) for override in overrides]
        for one in given:
            if one.key == "hydra.searchpath" and not one.read.is_delete():
                insist_on_folders(one.read.value())
        split = self._split(verb, given)
        base = self._base(verb, split, mode, validate)
        root = base.config
        if split.file is not None:
            root = sources.as_value(self._configs.folders, verb, split.file)
        typed = {
            one.key: None if one.read.is_delete() or one.read.is_sweep_override() else one.read.value()
            for one in given
        }
        following = tuple(
            replace(_parsed(f"{key}={length}"), follows=True)
            for key, length in dims_of(typed).items()
            if not _is_absent(root, key)
        )
        return [*given, *following], replace(split, values=(*split.values, *following)), base

    def _split(self, verb: str, given: Sequence[_Given]) -> _Split:
        file = None
        chosen = [one for one in given if one.key == verb]
        if verb in _FILE_IS_VALUE and len(chosen) == 1 and chosen[0].line.startswith(f"{verb}="):
            name = chosen[0].read.value()
            if isinstance(name, str) and sources.as_value(self._configs.folders, verb, name) is not None:
                file = name
        values, options = [], []
        for one in given:
            if self._is_value(one.read):
                values.append(one)
            elif file is None or one is not chosen[0]:
                options.append(one)
        return _Split(tuple(one.line for one in options), tuple(values), file)

    def _is_value(self, override: Override) -> bool:
        """Return whether Hydra composes the same without the override: it selects no option, ..."""
        if override.is_hydra_override() or override.is_sweep_override() or override.package is not None:
            return False
        value = None if override.is_delete() else override.value()
        return isinstance(value, dict) or not self.is_group(override.key_or_group)

    def _base(self, verb: str, split: _Split, mode: RunMode, validate: bool = True) -> _Base:
        bases, key = self._known.bases, (verb, split.options, mode, validate)
        if key not in bases:
            base = self.compose_options(verb, split.options, mode, validate)
            hydras = base.config.hydra
            more = hydras.searchpath or hydras.job.env_copy  # on which it depends, beyond files and variables
            if more or mode is not RunMode.RUN:  # a sweep is composed once
                return base
            while len(bases) >= _KEPT:
                del bases[next(iter(bases))]
            bases[key] = base
        return bases[key]

    def compose_options(self, verb: str, options: Sequence[str], mode: RunMode, validate: bool) -> _Base:
        """Have Hydra compose conf/VERB.yaml with options of groups and settings of Hydra's own."""
        otherwise = self._chosen_otherwise(verb, options)
        with sources.settings_dropped(otherwise) as left_out:
            config = self._loader.load_configuration(
                verb, list(options), mode, validate_sweep_overrides=validate
            )
        left_out = list(left_out)
        with open_dict(config):
            has_nested = sources.move_nested(config)
            chosen = set(map(_group_of, options))
            alone = "optimizer" in chosen and OmegaConf.select(config, "optimizer._target_") == _WITHOUT_CLIP
            if alone and OmegaConf.select(config, "train.clip") is not None:
                config.train.clip = None
                left_out.append(_CLIP)
            config.hydra.runtime.choices[LEFT_OUT] = left_out
            config.hydra.runtime.choices[MAY_NOT_FIT] = FITTED if otherwise & {"task", "model"} else ()
        return _Base(config, otherwise, has_nested=has_nested)

    def _chosen_otherwise(self, verb: str, options: Sequence[str]) -> frozenset[str]:
        own = [option for option in options if _group_of(option) not in _GROUPS]
        if len(own) == len(options):
            return frozenset()

        def choices(options: Sequence[str]) -> dict[str, Any]:
            found = self._loader.compute_defaults_list(verb, list(options), RunMode.MULTIRUN)
            known: dict[str, Any] = found.overrides.known_choices
            return known

        chosen = choices(options)
        if chosen.get("experiment") is None:
            return frozenset()
        before = choices(own)
        chosen_groups = {_group_of(option) for option in options} & set(_GROUPS)
        return frozenset(group for group in chosen_groups if chosen.get(group) != before.get(group))

    def _with_values(
        self,
        verb: str,
        given: Sequence[_Given],
        split: _Split,
        base: _Base,
        mode: RunMode,
        validate: bool = True,
    ) -> DictConfig:
        left_out = list(base.config.hydra.runtime.choices[LEFT_OUT])
        values = [
            one
            for one in split.values
            if not (one.read.is_delete() and one.key in left_out and _is_absent(base.config, one.key))
        ]
        set_values = hydra_private.value_setter()
        if set_values is not None:
            config = copy.deepcopy(base.config)
            if split.file is not None:
                with open_dict(config):
                    config.merge_with(sources.as_value(self._configs.folders, verb, split.file))
                    config.hydra.runtime.choices[verb] = split.file
            set_values([one.read for one in values], config)
        else:
            lines = [f"{_CLIP}=null"] if _CLIP in left_out else []
            lines += [
                one.typed if base.has_nested else one.line
                for one in given
                if one in values or one not in split.values
            ]
            with sources.settings_dropped(base.chosen_otherwise):
                config = self._loader.load_configuration(verb, lines, mode, validate_sweep_overrides=validate)
            with open_dict(config):
                sources.move_nested(config)
        self._finish(config, given, base)
        return config

    def _finish(self, config: DictConfig, given: Sequence[_Given], base: _Base) -> None:
        """Set what Hydra's own part says of this very config."""
        typed = {one.key for one in given if not one.read.is_delete()}
        with open_dict(config):
            for name in (LEFT_OUT, MAY_NOT_FIT):
                keys = [key for key in base.config.hydra.runtime.choices[name] if key not in typed]
                config.hydra.runtime.choices.pop(name, None)
                if keys or (name == MAY_NOT_FIT and base.config.hydra.runtime.choices[name]):
                    config.hydra.runtime.choices[name] = keys
        own = [one for one in given if not one.read.is_hydra_override() and not one.follows]
        config.hydra.overrides.task = [one.typed for one in own]
        config.hydra.runtime.cwd = os.getcwd()
        dirname = hydra_private.override_dirname([one.read for one in own], config.hydra.job)
        if dirname is not None:
            config.hydra.job.override_dirname = dirname


def resolve(cfg: DictConfig) -> Composed:
    """Resolve a config with Hydra's own part still in it."""
    with hydra_config_set(cfg):
        validate_hydra(cfg)
        settings = {str(key): _resolved(cfg, str(key)) for key in cfg if key != "hydra"}
        return _of(settings, cfg.hydra.runtime.choices, _is_multirun(cfg.hydra.mode))


def _of(settings: dict[str, Any], chosen: Any, multirun: bool = False) -> Composed:
    choices: Any = OmegaConf.to_container(OmegaConf.create(chosen))
    left_out, may_not_fit = (tuple(choices.pop(name, ())) for name in (LEFT_OUT, MAY_NOT_FIT))
    return Composed(nested_settings(settings), choices, multirun, left_out, may_not_fit)


def _resolved(cfg: DictConfig, key: str) -> Any:
    value = "???" if OmegaConf.is_missing(cfg, key) else cfg[key]
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def resolve_in_job(cfg: DictConfig) -> Composed:
    """Resolve the config a launcher hands to a job, whose Hydra part is HydraConfig."""
    register_resolvers()  # a worker process starts without them
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    hydras = HydraConfig.get()
    return replace(_of(settings, hydras.runtime.choices), overrides=tuple(hydras.overrides.task))


@contextlib.contextmanager
def hydra_config_set(cfg: DictConfig) -> Iterator[None]:
    """Install `cfg` as HydraConfig, which ${hydra:...} reads."""
    installed: Any = HydraConfig.instance()
    before, installed.cfg = installed.cfg, cfg
    try:
        yield
    finally:
        installed.cfg = before


@contextlib.contextmanager
def _wrap_errors() -> Iterator[None]:
    """Turn any other exception during composition into an InputError."""
    try:
        yield
    except (*ERRORS, InputError, RecursionError):
        raise
    except Exception as error:
        if str(error).startswith(_NO_OPTION):  # hydra_session knows the options
            raise
        raise InputError(f"cannot compose a config ({type(error).__name__}: {error})") from error


@contextlib.contextmanager
def hydra_session(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Iterator[Composer]:
    """Initialize Hydra with these configs; its errors over `overrides` become one line."""
    try:
        with _hydra_session(configs, verb) as composer:
            yield composer
    except ERRORS as error:
        raise InputError(explain(configs, verb, overrides, error, _keys)) from error
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
def _hydra_session(configs: ConfigDirs, verb: str) -> Iterator[Composer]:
    """Set the process's own Hydra state aside meanwhile."""
    register_resolvers()
    with _lock, sources.searched(configs.folders):
        held, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        name = JobRuntime.instance().get("name")
        GlobalHydra.instance().clear()
        try:
            initialize_config_dir(str(conf_dir()), job_name=f"icl {verb}", **_VERSION_BASE)
            app: Any = GlobalHydra.instance().hydra
            app.config_loader = Composer(app.config_loader, configs)
            yield app.config_loader
        finally:
            HydraConfig.instance().cfg = config  # a launcher has left its last job's
            GlobalHydra.instance().clear()
            if held is not None:
                GlobalHydra.instance().initialize(held)
                JobRuntime.instance().set("name", name)


def _keys(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> list[str]:
    """Return the keys of the config with the groups as chosen: what a misspelt key could have meant."""
    groups = configs.groups
    for kept in ([o for o in overrides if o.partition("=")[0].lstrip("+") in groups], []):
        with contextlib.suppress(*ERRORS), _hydra_session(configs, verb) as composer:
            return [*leaves(composer.compose(verb, kept).settings), *groups]
    return sorted(groups)


def _state(configs: ConfigDirs) -> tuple[Any, ...]:
    """Return the state of the files and of the variables they name, on which composed configs depend."""
    folders = [*configs.folders, *([configs.local.parent] if configs.local else [])]
    files = tuple(stamp for folder in folders for stamp in _stamps(str(folder)))
    return files, tuple((name, os.environ.get(name)) for name in _named_in(files))


def _stamps(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _stamps(entry.path)
            elif entry.name.endswith(".yaml"):
                found = entry.stat()
                yield entry.path, found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=1)
def _named_in(files: tuple[tuple[str, int, int], ...]) -> list[str]:
    texts = (Path(path).read_text(encoding="utf-8") for path, *_ in files)
    return sorted({name for text in texts for name in re.findall(r"oc\.env:\s*(\w+)", text)})


def _group_of(option: str) -> str:
    return option.lstrip("+~").partition("=")[0]


def _is_below(verb: str, given: _Given) -> bool:
    return user_key(given.key).startswith(f"{verb}.")


def _outside(verb: str) -> set[str]:
    """Return the keys below `verb` that are composed outside it."""
    return {user.partition(".")[2] for user in COMPOSED_KEYS if user.startswith(f"{verb}.")}


def _is_absent(config: DictConfig, key: str) -> bool:
    return OmegaConf.select(config, key) is None


def _is_multirun(mode: Any) -> bool:
    return getattr(mode, "name", mode) == RunMode.MULTIRUN.name


# Plain values, set on what is resolved already.

_RESOLVERS = (
    "at",
    "oc.env",
    "oc.select",
)  # their values follow from what is written; those of `at` from scale
_EXPRESSION = re.compile(r"\$\{([^${}]*)\}")
_OF_SCALE = re.compile(r"\$\{at:[^${}]*\}")
_RESOLVER = re.compile(r"\s*([\w.]+)\s*:")


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
    *folders, name = user_key(override.key_or_group).split(".")
    node: Any = settings
    for folder in folders:
        node = node.get(folder) if isinstance(node, dict) else None
    known = isinstance(node, dict) and name in node and not isinstance(node[name], dict)
    plain = override.type is OverrideType.CHANGE and _is_plain(value)
    if not known or not plain or any(_expressions(value)) or value == "???":
        return False
    node[name] = _copied(value)
    return True


def _is_plain(value: Any, levels: int = 8) -> bool:
    """Return whether it is a number, a text or a list, not nested so deeply that Hydra may refuse it."""
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(entry, levels - 1) for entry in value)
    return not isinstance(value, dict)


def _copied(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copied(entry) for key, entry in node.items()}
    return [_copied(entry) for entry in node] if isinstance(node, list) else node
