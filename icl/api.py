"""The verbs for Python: the same jobs and the same records as the command's, errors as exceptions.

Nothing of the process is changed: no signal handler outside the main thread, no working folder, no variable.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.config.values import literal
from icl.events import Event, ItemProgress, Listener, quiet
from icl.jobs.execution.run_many import parse_reproduce, reproduce
from icl.jobs.requests.check import CheckRequest
from icl.jobs.requests.figure import FigureRequest
from icl.jobs.requests.parse import parse
from icl.jobs.requests.request import run_request
from icl.notebook import FigureDict, ResultDict

Folder = str | PathLike[str]
PATIENCE = 2.0  # seconds before the bar is shown
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
    with _watched(session, f"{verb} {name}", on_event) as session:
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
    with _watched(session, "reproduce", on_event) as session:
        return ResultDict(reproduce(request, session))


@contextlib.contextmanager
def _watched(session: Session, what: str, on_event: Listener | None) -> Iterator[Session]:
    """Yield the session with its listener: the caller's, or a bar on a terminal, in the main thread alone."""
    main = threading.current_thread() is threading.main_thread()
    if on_event is not None or not main or not sys.stderr.isatty():
        yield replace(session, on_event=on_event or quiet)
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(f"{what}: starting", total=None)

    def see(event: Event) -> None:
        if isinstance(event, ItemProgress):
            about = f"{event.item}: {event.text}"
            bar.update(task, description=about, total=1.0, completed=event.share)
        quiet(event)

    begin = threading.Timer(PATIENCE, bar.start)
    begin.start()
    try:
        yield replace(session, on_event=see)
    finally:
        begin.cancel()
        begin.join()
        bar.stop()


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
