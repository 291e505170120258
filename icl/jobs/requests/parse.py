"""Parse a composed config into a typed request: a training run, a check or a figure."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import whole
from icl.jobs.requests import check, figure, train
from icl.jobs.requests.request import Request

_KINDS: dict[str, Any] = {"train": train, "check": check, "figure": figure}
OWN: dict[str, Sequence[str]] = {kind: module.OWN for kind, module in _KINDS.items()}


def parse(
    kind: str, composed: Composed, configs: ConfigDirs, known: dict[Any, Any] | None = None
) -> tuple[Request, Session]:
    """Parse a composed config into a request and a session. `known` caches lookups shared by many jobs."""
    session = parse_session(kind, OWN[kind], composed, configs)
    session = session if known is None else replace(session, cache=known)
    if (jobs := composed.settings.get("jobs")) is not None:
        whole("jobs", jobs, 1)
    return _KINDS[kind].parse(composed, session), session


def parse_named(
    kind: str, id: str, overrides: Sequence[str], configs: ConfigDirs, base: Composed | None = None
) -> tuple[Request, Session]:
    """Parse a check or figure by name. Of many, `base` is the config of none, composed once for all with the
    same overrides: then a file that is no more than a node of settings is read, and not composed."""
    node = None
    if base is not None:
        with contextlib.suppress(Exception):  # Hydra says what is wrong with the file
            node = _node(kind, id, configs, base)
    if base is None or node is None:
        return parse(kind, compose(configs, kind, [f"{kind}={id}", *overrides]), configs)
    settings, choices = {**base.settings, kind: node}, {**base.choices, kind: id}
    typed = (f"{kind}={id}", *overrides)
    return parse(kind, replace(base, settings=settings, choices=choices, overrides=typed), configs)


def _node(kind: str, id: str, configs: ConfigDirs, base: Composed) -> dict[str, Any] | None:
    """Return the settings of a check or figure as Hydra composes them; None where that takes Hydra."""
    text = configs.text(kind, id)
    if not text.startswith(f"# @package {kind}\n") or re.search(r"^defaults:", text, re.MULTILINE):
        return None
    from omegaconf import OmegaConf

    from icl.resolver import register

    register()
    whole = OmegaConf.create({"scale": base.settings["scale"], kind: OmegaConf.create(text)})
    read: Any = OmegaConf.to_container(whole, resolve=True)
    default = dict(base.settings[kind])
    given = [key.partition(".")[2] for key, *_ in (o.partition("=") for o in base.overrides) if "." in key]
    return {**default, **read[kind], **{key: default[key] for key in given if key in default}}
