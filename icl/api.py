"""The verbs for Python: the same jobs and the same records as the command's, errors as exceptions.

Nothing of the process is changed: no signal handler outside the main thread, no working folder, no variable.
Settings are those of the verb; a check or a figure takes its own by their names, and for all there are
`scale`, `force`, `stale` and `logger`. `config_dir` is a folder of your own configs, `on_event` a listener
(icl.progress).
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from icl.cli.display import Display
from icl.config.compose import compose
from icl.config.search_path import GROUP_OF, ConfigDirs
from icl.config.session import Session
from icl.config.values import literal
from icl.jobs.execution import run_many
from icl.jobs.requests.parse import parse
from icl.jobs.requests.request import run_request
from icl.jobs.stored import report_content, run_list
from icl.notebook import FigureDict, ResultDict
from icl.progress import Listener, quiet

Folder = str | PathLike[str]
_COMMON = ("scale", "force", "stale", "logger", "from")


def check(
    name: str,
    *,
    outputs: Folder | None = None,
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl check NAME check.KEY=VALUE ...` as a dict: the verdict and all that it rests on.

    Nothing is written unless `outputs` names a folder to keep the record in.
    """
    with _asked("check", name, settings, outputs, config_dir, on_event) as (request, session):
        return ResultDict(request.measure(session) if outputs is None else run_request(request, session))


def train(
    experiment: str,
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl train EXPERIMENT KEY=VALUE ...` as a dict: where the run is, its metrics, its verdicts.

    Dotted settings come in a dict: `icl.train("ahn/theorem3", **{"model.layers": 2})`. A finished run is
    found and not repeated; `icl.load_run(found["run_dir"])` reads it.
    """
    with _asked("train", experiment, settings, outputs, config_dir, on_event) as (request, session):
        return ResultDict(run_request(request, session))


def figure(
    name: str,
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> FigureDict:
    """`icl figure NAME figure.KEY=VALUE ...` as a dict: files, and claims with their verdicts.

    `.figure` of it is a matplotlib Figure: `icl.figure("ahn/fig1", width=3.3, layers=2).figure`.
    """
    with _asked("figure", name, settings, outputs, config_dir, on_event) as (request, session):
        return FigureDict(run_request(request, session), partial(request.draw, session))


def reproduce(
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl reproduce only=[...] scale=...` as a dict: all checks, all figures, and where the report is."""
    with _asked("reproduce", "", settings, outputs, config_dir, on_event) as (request, session):
        return ResultDict(run_many.reproduce(request, session))


def list_runs(outputs: Folder = "outputs", **settings: Any) -> list[run_list.ListedRun]:
    """`icl runs KEY=VALUE ...` as a list, the newest first. Each has `.path`, `.name`, `.status`, `.metrics`,
    `.config`, and `.load()`, which is load_run; `.document()` is a row for pandas.DataFrame."""
    return run_list.list_runs(Path(outputs), settings)


@contextlib.contextmanager
def _asked(
    verb: str,
    name: str,
    settings: Mapping[str, Any],
    outputs: Folder | None,
    config_dir: Folder | None,
    on_event: Listener | None,
) -> Iterator[tuple[Any, Session]]:
    """Yield the request of a verb and its session, whose listener is the caller's, or the command's, in
    the main thread alone."""
    configs, group = ConfigDirs.of(config_dir), GROUP_OF.get(verb)
    overrides = [f"{group}={configs.one_option(group, name)}"] if group else []
    overrides += [] if "logger" in settings else ["logger=none"]
    within = f"{verb}." if group == verb else ""
    for key, value in settings.items():
        place = "" if key.partition(".")[0] in _COMMON or key.startswith(within) else within
        overrides.append(f"{place}{key}={literal(value)}")
    if outputs is not None:
        overrides.append(f"paths.outputs={literal(str(outputs))}")
    composed = compose(configs, verb, overrides)
    request, session = (parse if group else report_content.parse)(verb, composed, configs)
    if on_event is not None or threading.current_thread() is not threading.main_thread():
        yield request, replace(session, on_event=on_event or quiet)
        return
    with Display(f"{verb} {name}".strip()) as display:
        yield request, replace(session, on_event=display.see)
