"""The three things that can be asked for, by the verb that asks: one protocol, icl.jobs.request.Request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from icl.config.compose import Composed, compose
from icl.config.places import Configs
from icl.config.session import Session, session_of
from icl.errors import whole
from icl.jobs import check, figure, train
from icl.jobs.cluster import cluster_of
from icl.jobs.request import Request

_REQUEST: Mapping[str, Callable[[Composed, Session], Request]] = {
    "train": train.request,
    "check": check.request,
    "figure": figure.request,
}
OWN = {"train": train.OWN, "check": check.OWN, "figure": figure.OWN}


def requested(
    kind: str, composed: Composed, configs: Configs, known: dict[Any, Any] | None = None
) -> tuple[Request, Session]:
    """What a config asks for, and where: here the config ends. Of many, what they share is `known`."""
    session = session_of(kind, OWN[kind], composed, configs)
    session = session if known is None else replace(session, known=known)
    if (jobs := composed.settings.get("jobs")) is not None:
        whole("jobs", jobs, 1)
    cluster_of(composed.settings["cluster"])
    return _REQUEST[kind](composed, session), session


def named(
    kind: str,
    id: str,
    overrides: Sequence[str],
    configs: Configs,
    compose: Callable[[Configs, str, Sequence[str]], Composed] = compose,
) -> tuple[Request, Session]:
    """A check or figure by name, of many: `check.seed` counts only where a check has one."""
    seedless = [override for override in overrides if not override.startswith("check.seed=")]
    composed = compose(configs, kind, [f"{kind}={id}", *seedless])
    if len(seedless) < len(overrides) and "seed" in composed.settings[kind]:
        composed = compose(configs, kind, [f"{kind}={id}", *overrides])
    return requested(kind, composed, configs)
