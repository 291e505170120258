"""Settings from configs: Hydra composes, and what comes out is plain. No config goes further.

Beyond Hydra's own composition there are three things: a group chosen beside an experiment has none of what
the experiment set for its own option; a dimension follows from an array that is typed; and what a user writes
within a group whose class does not take it (check.weights, optimizer.schedule) is composed beside the group.
"""

import contextlib
import copy
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from hydra_plugins.icl._loader import share_compositions
from icl.config.search_path import ConfigDirs, conf_dir
from icl.config.values import dims_of, flatten, literal
from icl.errors import InputError, nearest, nearest_key
from icl.resolver import register as register_resolvers

GROUPS = ("task", "model", "optimizer", "schedule", "callbacks")  # what an experiment sets is its own's
BESIDE = {"optimizer.schedule": "schedule", "check.weights": "weights", "check.expected": "expected"}
HABITS = {  # of other applications of Hydra and Lightning
    "ckpt_path": "the same command resumes an interrupted run",
    "test": "icl check judges the weights of a run: check.weights=RUN",
    "heads": "model=multihead has heads",
    "early_stopping": "callbacks=[default,early_stopping] adds it",
    **dict.fromkeys(("epochs", "max_epochs", "max_steps"), "train.steps=N is the length of training"),
    "gradient_clip_val": "train.clip=X clips gradients",
    "data": "task has the law of the prompts",
}
_SEARCHED = "hydra.searchpath"
ERRORS = (HydraException, OmegaConfBaseException, YAMLError)
_UNKNOWN = r"Could not (?:override|append|delete)[^']*'?([\w/@.]+)'?|Key '([^']+)' is not in struct"
_A_GROUP = "Config group override must be|object has no attribute"  # of model=3, train=false
_SEVERAL = r"(?:argument|parameters) '([^']+)'.*(?:To use it as a list|requires --multirun)"
_lock = threading.RLock()  # Hydra's state is the process's


@dataclass(frozen=True)
class Composed:
    """Resolved settings, the option chosen of each group, and the overrides as they were typed, without
    Hydra's own."""

    settings: dict[str, Any]
    choices: Mapping[str, str | None]
    overrides: tuple[str, ...] = ()


def compose(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
    """Compose conf/VERB.yaml with `overrides`."""
    typed = for_hydra(overrides)
    if configs.user is not None:  # as by --config-dir
        typed.append(f"{_SEARCHED}={literal([f'file://{configs.user}'])}")
    with hydra_session(configs, verb, overrides) as loader:
        share_compositions(loader)
        return resolve(loader.load_configuration(verb, typed, RunMode.RUN), loader)


def for_hydra(overrides: Sequence[str]) -> list[str]:
    """Return overrides with each key where it is composed."""
    names = "|".join(map(re.escape, BESIDE))
    key = re.compile(rf"^([+~]*)({names})(?=[.=]|$)")
    return [key.sub(lambda found: found[1] + BESIDE[found[2]], override) for override in overrides]


def resolve(cfg: DictConfig, loader: ConfigLoader) -> Composed:
    """Return the settings of a config as `loader` has composed it, with Hydra's part in it."""
    verb, typed = cfg.hydra.job.config_name, list(cfg.hydra.overrides.task)
    given = {key_of(override) for override in typed}
    with open_dict(cfg), _as_hydra_config(cfg):
        _leave_out_what_is_anothers(cfg, typed, loader)
        chosen = OmegaConf.select(cfg, "optimizer._target_") if "optimizer" in given else None
        if chosen == "torch.optim.LBFGS" and "train.clip" not in given:
            cfg.train.clip = None  # its line search needs the true gradient
        if verb in ("train", "check", "figure"):
            for key, length in dims_of(values_of(typed)).items():
                if OmegaConf.select(cfg, key, default=False) is not False:
                    OmegaConf.update(cfg, key, length)
        if "model" in cfg and OmegaConf.is_interpolation(cfg.model, "dim"):
            del cfg.model["dim"]  # it is there for users who instantiate without icl
        own = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
        settings: Any = OmegaConf.to_container(own, resolve=True)
    for user, key in BESIDE.items():
        group, _, name = user.partition(".")
        if key in settings and group in settings:
            settings[group] = {**(settings[group] or {}), name: settings.pop(key)}
    choices: Any = OmegaConf.to_container(cfg.hydra.runtime.choices)
    return Composed(settings, choices, tuple(typed))


def resolve_in_job(cfg: DictConfig) -> Composed:
    """Return the settings of the config that a launcher hands to a job."""
    register_resolvers()  # a worker process starts without them
    cfg = copy.deepcopy(cfg)
    with read_write(cfg), open_dict(cfg):
        cfg.hydra = HydraConfig.get()
    OmegaConf.set_readonly(cfg, None)
    OmegaConf.set_readonly(cfg.hydra, None)
    return resolve(cfg, GlobalHydra.instance().config_loader())


def _leave_out_what_is_anothers(cfg: DictConfig, typed: Sequence[str], loader: ConfigLoader) -> None:
    """Give each group that is typed beside an experiment, as another option than its own, the settings it has
    without the experiment; with another task or model the experiment's checks go. What is typed stays."""
    experiments = [override for override in typed if key_of(override) == "experiment"]
    chosen = [group for group in GROUPS if any(override.startswith(f"{group}=") for override in typed)]
    if not experiments or not chosen:
        return
    verb = cfg.hydra.job.config_name  # in a multirun's mode Hydra leaves a swept value aside
    searched = [one for one in cfg.hydra.overrides.hydra if key_of(one) == _SEARCHED]
    own = loader.load_configuration(verb, [*searched, *experiments], RunMode.MULTIRUN)
    before, now = own.hydra.runtime.choices, cfg.hydra.runtime.choices  # a list of options is not among them
    groups = [group for group in chosen if before.get(group) is None or before[group] != now.get(group)]
    below = [override for override in typed if key_of(override).partition(".")[0] in groups]
    kept = [override for override in below if not override.startswith("~")]
    alone = loader.load_configuration(verb, [*searched, *kept], RunMode.MULTIRUN)
    for group in groups:
        cfg[group] = alone[group]
    for override in set(below) - set(kept):
        group, _, name = key_of(override).partition(".")
        cfg[group].pop(name, None)
    if {"task", "model"} & set(groups) and "checks" not in map(key_of, typed):
        cfg.checks = alone.checks


def key_of(override: str) -> str:
    """Return what an override sets: optimizer.lr of `+optimizer.lr=.1`."""
    return override.lstrip("+~").partition("=")[0]


def values_of(typed: Sequence[str]) -> dict[str, Any]:
    """Return the values of overrides; None of one that is swept or deleted."""
    read = OverridesParser.create().parse_overrides(list(typed))
    return {
        str(one.key_or_group): None if one.is_delete() or one.is_sweep_override() else one.value()
        for one in read
    }


@contextlib.contextmanager
def _as_hydra_config(cfg: DictConfig) -> Iterator[None]:
    """Install `cfg` as HydraConfig, which ${hydra:...} reads."""
    installed: Any = HydraConfig.instance()
    before, installed.cfg = installed.cfg, cfg
    try:
        yield
    finally:
        installed.cfg = before


@contextlib.contextmanager
def hydra_session(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Iterator[ConfigLoader]:
    """Initialize Hydra with our folder; its errors over `overrides` become one line."""
    register_resolvers()
    with input_errors(configs, verb, overrides), hydra_set_aside():
        initialize_config_dir(str(conf_dir()), job_name=f"icl {verb}", version_base="1.3")
        yield GlobalHydra.instance().config_loader()


@contextlib.contextmanager
def hydra_set_aside() -> Iterator[None]:
    """Set the process's own Hydra aside meanwhile."""
    with _lock:
        held, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        GlobalHydra.instance().clear()
        try:
            yield
        finally:
            HydraConfig.instance().cfg = config
            GlobalHydra.instance().clear()
            if held is not None:
                GlobalHydra.instance().initialize(held)


@contextlib.contextmanager
def input_errors(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Iterator[None]:
    """Turn errors of Hydra over `overrides` into an InputError of one line."""
    try:
        yield
    except InputError:
        raise
    except (*ERRORS, ValueError) as error:  # the second of a flag
        raise InputError(_explained(configs, verb, overrides, error)) from error
    except RecursionError:
        raise InputError("a value is nested too deeply to be read") from None


def _explained(configs: ConfigDirs, verb: str, overrides: Sequence[str], error: Exception) -> str:
    """Return an error of Hydra or OmegaConf in one line, with the nearest choice if there is one."""
    text, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:  # of a value that a resolver refused
        if isinstance(cause, InputError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _no_option(configs, error.missing_cfg_file) or text.splitlines()[0]
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as an override; quote lists and strings for the shell"
    if unknown := re.search(_UNKNOWN, text):
        path = re.search(r"full_key: (\S+)", text)
        key = path[1] if path else unknown[1] or unknown[2]
        if habit := HABITS.get(key.rpartition(".")[2]):
            return f"{key}: no such key; {habit}"
        known = [name for name in _keys(configs, verb, overrides) if name != key]
        adds = " (+... adds it)" if key.startswith(("trainer.", "callbacks.")) else ""
        return f"{key}: no such key{adds}{nearest_key(key, known)}"
    if re.search(_A_GROUP, text):
        for key, value in values_of(overrides).items():
            if key in (*configs.groups, "train") and not isinstance(value, str):
                return f"{key}={literal(value)}: {key} is a group; {key}.NAME=VALUE sets one of its settings"
    if several := re.search(_SEVERAL, text, re.DOTALL):
        return f"{several[1]}: several values need -m, one list needs [ ]"
    lines = [line.strip() for line in str(error.__cause__ or error).splitlines() if line.strip()]
    two = isinstance(error, YAMLError) or "".join(lines[:1]).endswith(":")  # YAML's second line is the place
    return " ".join(lines[: 1 + two]) if lines else type(error).__name__


def _no_option(configs: ConfigDirs, path: str) -> str | None:
    """Return what is wrong with an option of ours, such as experiment/ahn/theorem3, or of Hydra's."""
    if not path.startswith("hydra/"):
        try:
            configs.one_option(*path.split("/", 1))
        except (InputError, TypeError) as problem:
            return str(problem) if isinstance(problem, InputError) else None
        return None
    group, _, option = path.rpartition("/")
    names = ConfigStore.instance().list(group)
    here = sorted({name.removesuffix(".yaml") for name in names if not name.startswith("_")})
    hint = "; pip install 'icl-theory[slurm]'" if option.startswith("submitit") else nearest(option, here)
    return f"{group}={option}: is not installed (one of: {', '.join(here)}){hint}"


def _keys(configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> list[str]:
    """Return the keys of the config with the groups as chosen: what a misspelt key could have meant."""
    groups = configs.groups
    for kept in ([o for o in overrides if o.partition("=")[0].lstrip("+") in groups], []):
        with contextlib.suppress(InputError):
            known = flatten(compose(configs, verb, kept).settings)
            return [*known, *{key.rpartition(".")[0] for key in known}, *groups]
    return sorted(groups)
