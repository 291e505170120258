"""Parse a composed config into a typed request: a training run, a check or a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import whole
from icl.jobs.execution.cluster import cluster_of
from icl.jobs.requests import check, figure, train
from icl.jobs.requests.limits import validate_limits
from icl.jobs.requests.request import Request

_REQUEST: Mapping[str, Callable[[Composed, Session], Request]] = {
    "train": train.parse,
    "check": check.parse,
    "figure": figure.parse,
}
OWN = {"train": train.OWN, "check": check.OWN, "figure": figure.OWN}


def parse(
    kind: str, composed: Composed, configs: ConfigDirs, known: dict[Any, Any] | None = None
) -> tuple[Request, Session]:
    """Parse a composed config into a request and a session. `known` caches lookups shared by many jobs."""
    session = parse_session(kind, OWN[kind], composed, configs)
    session = session if known is None else replace(session, cache=known)
    if (jobs := composed.settings.get("jobs")) is not None:
        whole("jobs", jobs, 1)
    cluster_of(composed.settings["cluster"])
    request = _REQUEST[kind](composed, session)
    validate_limits(composed.settings)
    return request, session


def parse_named(kind: str, id: str, overrides: Sequence[str], configs: ConfigDirs) -> tuple[Request, Session]:
    """Parse a check or figure by name; `check.seed` is ignored by a check without a seed."""
    seedless = [override for override in overrides if not override.startswith("check.seed=")]
    composed = compose(configs, kind, [f"{kind}={id}", *seedless])
    if len(seedless) < len(overrides) and "seed" in composed.settings[kind]:
        composed = compose(configs, kind, [f"{kind}={id}", *overrides])
    return parse(kind, composed, configs)
