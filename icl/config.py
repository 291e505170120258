"""From configuration to objects: the one place where Hydra's config ends.

`instantiate` is the only function that turns a `_target_` into an object, and only of allowed packages;
components take typed arguments and never see a config.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from icl.errors import InputError, nearest, one_of, whole

SCALES = ("smoke", "laptop", "paper")
FORMATS = ("text", "json")
COMMON = ("scale", "format", "force", "verbose", "paths", "logger")  # conf/base.yaml
_ALLOWED = ("icl", "torch.optim", "pytorch_lightning")
_CACHES = {"MPLCONFIGDIR": "matplotlib", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


def conf_dir() -> Path:
    """The shipped configs: `icl/conf` in an installed wheel, `conf` beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def allowed_packages() -> list[str]:
    """What a `_target_` may come from: ours, torch.optim, Lightning, and the packages ICL_PACKAGES names."""
    more = os.environ.get("ICL_PACKAGES", "").replace(":", ",").split(",")
    return [*_ALLOWED, *(name.strip() for name in more if name.strip())]


def register_resolvers() -> None:
    """`${at:smoke,laptop,paper}`: the value for the scale in force."""
    OmegaConf.register_new_resolver("at", _at, replace=True)


def _at(*values: Any, _root_: DictConfig) -> Any:
    scale = one_of("scale", _root_.get("scale", "laptop"), SCALES)
    if len(values) != len(SCALES):
        raise InputError(
            f"${{at:...}} has {len(values)} values, must have one for each of {', '.join(SCALES)}"
        )
    return values[SCALES.index(scale)]


def plain(node: Any) -> Any:
    """A resolved plain copy of a config node."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def allowed_target(key: str, name: Any) -> str:
    """`name` if it lies in an allowed package."""
    allowed = allowed_packages()
    if not isinstance(name, str) or not any(name.startswith(f"{package}.") for package in allowed):
        known = ", ".join(allowed)
        raise InputError(
            f"{key}._target_={name}: must be in one of {known} (ICL_PACKAGES=mylab adds a package)"
        )
    return name


def target_class(key: str, name: Any) -> type:
    """The class a `_target_` names."""
    module, _, attribute = allowed_target(key, name).rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{key}._target_={name}: cannot be imported ({error})") from None
    if not isinstance(found, type):
        raise InputError(f"{key}._target_={name}: is not a class")
    return found


def instantiate(key: str, node: Mapping[str, Any], **given: Any) -> Any:
    """The object a config node describes; `given` are arguments that other nodes supply."""
    settings = {k: v for k, v in node.items() if k != "_target_"}
    if "_target_" not in node:
        raise InputError(f"{key}: has no _target_; choose one of the group's options")
    cls = target_class(key, node["_target_"])
    parameters = inspect.signature(cls).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in settings:
        if name not in parameters and not takes_any:
            raise InputError(f"{key}.{name}: {cls.__name__} has no such setting{nearest(name, parameters)}")
    required = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    for name in required:
        if name not in settings and name not in given:
            raise InputError(f"{key}.{name}: missing")
    try:
        return cls(**settings, **{k: v for k, v in given.items() if k in parameters})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{key}: {cls.__name__} refuses its settings: {error}") from error


def resolved_seeds(seeds: Any, seed: Any) -> tuple[int, ...]:
    """`seed` if set, else `seeds`; order kept, duplicates refused."""
    chosen = [seed] if seed is not None else seeds
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
        raise InputError(f"seeds={chosen}: must be a list of at least one integer")
    found = [whole("seed" if seed is not None else "seeds", entry, 0) for entry in chosen]
    if len(set(found)) < len(found):
        raise InputError(f"seeds={found}: has duplicates")
    return tuple(found)


def common_settings(cfg: DictConfig, verb: str, own: Sequence[str]) -> Path:
    """Checks what every verb understands, and that there is nothing else but `own`; the outputs folder."""
    known = [*COMMON, *own]
    for key in map(str, cfg):
        if key not in known:
            raise InputError(f"{key}: no such key in icl {verb}{nearest(key, known)}")
    for key in known:
        if key not in cfg:
            raise InputError(f"{key}: missing")
    one_of("scale", cfg.scale, SCALES)
    one_of("format", cfg.format, FORMATS)
    for key in ("force", "verbose"):
        if not isinstance(cfg[key], bool):
            raise InputError(f"{key}={cfg[key]}: must be true or false")
    return outputs_folder(cfg)


def outputs_folder(cfg: DictConfig) -> Path:
    """Where everything is written, absolute; it need not exist."""
    if not OmegaConf.is_dict(cfg.paths) or list(cfg.paths) != ["outputs"]:
        raise InputError("paths: must have the key outputs and no other")
    value = cfg.paths.outputs
    if not isinstance(value, str) or not value:
        raise InputError(f"paths.outputs={value}: must be a folder")
    path = Path(value).expanduser().absolute()
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if not existing.is_dir():
        raise InputError(f"paths.outputs={value}: {existing} is not a folder")
    return path


def keep_caches_in(outputs: Path) -> None:
    """Libraries keep what they cache between processes below `outputs`, unless the user chose a place."""
    for variable, name in _CACHES.items():
        os.environ.setdefault(variable, str(outputs / "cache" / name))


def by_content(node: Any) -> Any:
    """`node` with every .npy file named in it replaced by a digest: a matrix counts by its content."""
    if isinstance(node, Mapping):
        return {key: by_content(value) for key, value in node.items()}
    if isinstance(node, str) and node.endswith(".npy") and Path(node).is_file():
        return file_digest(Path(node))
    return node


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leaves(node: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of everything in a config, for suggestions."""
    if not isinstance(node, DictConfig) or node._is_none():
        return
    for name in map(str, node):
        key = f"{prefix}{name}"
        yield key
        if not OmegaConf.is_missing(node, name) and not OmegaConf.is_interpolation(node, name):
            yield from leaves(node._get_node(name), f"{key}.")
