"""The verbs for Python: the same jobs and the same records as the command's, errors as exceptions.

Nothing of the process is changed: no signal handler outside the main thread, no working folder, no variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.values import literal
from icl.events import Listener, quiet
from icl.jobs.execution.run_many import parse_reproduce, reproduce
from icl.jobs.requests.check import CheckRequest
from icl.jobs.requests.figure import FigureRequest
from icl.jobs.requests.parse import parse
from icl.jobs.requests.request import run_request
from icl.notebook import FigureDict, ResultDict

Folder = str | PathLike[str]
_COMMON = ("scale", "force", "stale", "logger", "from")


def run(
    verb: str,
    name: str,
    settings: Mapping[str, Any],
    outputs: Folder | None,
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
) -> ResultDict:
    """Run one training run, check or figure. `settings` are the verb's; of a check or figure, its own
    names."""
    configs = ConfigDirs.of(config_dir)
    group = "experiment" if verb == "train" else verb
    option = f"{group}={configs.one_option(group, name)}"
    within = "" if verb == "train" else f"{verb}."
    composed = _composed(configs, verb, [option], settings, within, outputs)
    request, session = parse(verb, composed, configs)
    session = replace(session, on_event=on_event or quiet)
    if outputs is None and isinstance(request, CheckRequest):
        return ResultDict(request.measure(session))
    document = run_request(request, session)
    if isinstance(request, FigureRequest):
        return FigureDict(document, partial(request.draw, session))
    return ResultDict(document)


def run_all(
    settings: Mapping[str, Any],
    outputs: Folder,
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
) -> ResultDict:
    """Run every check and every figure, then write the report."""
    configs = ConfigDirs.of(config_dir)
    composed = _composed(configs, "reproduce", [], settings, "", outputs)
    request, session = parse_reproduce(composed, configs)
    return ResultDict(reproduce(request, replace(session, on_event=on_event or quiet)))


def _composed(
    configs: ConfigDirs,
    verb: str,
    chosen: Sequence[str],
    settings: Mapping[str, Any],
    within: str,
    outputs: Folder | None,
) -> Composed:
    overrides = [*chosen, *([] if "logger" in settings else ["logger=none"])]
    for key, value in settings.items():
        place = "" if key.partition(".")[0] in _COMMON or key.startswith(within) else within
        overrides.append(f"{place}{key}={literal(value)}")
    if outputs is not None:
        overrides.append(f"paths.outputs={literal(str(outputs))}")
    return compose(configs, verb, overrides)
