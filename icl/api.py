"""The verbs for Python: the same jobs and the same records as the command's, errors as exceptions.

Nothing of the process is changed: no signal handler outside the main thread, no working folder, no variable.
Settings are those of the verb; a check or a figure takes its own by their names, and for all there are
`scale`, `force`, `stale` and `logger`. `config_dir` is a folder of your own configs, `on_event` a listener
(icl.progress).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from icl.cli.display import Display
from icl.config.compose import compose
from icl.config.search_path import GROUP_OF, ConfigDirs
from icl.config.session import Session
from icl.config.values import literal
from icl.jobs.execution import run_many
from icl.jobs.requests.parse import parse
from icl.jobs.requests.request import run_request
from icl.jobs.stored import run_list
from icl.notebook import FigureDict, ResultDict
from icl.progress import Listener, quiet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from icl.training.load import TrainedRun

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
    request, session = _asked("check", name, settings, outputs, config_dir)
    with _watched(session, f"check {name}", on_event) as session:
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
    request, session = _asked("train", experiment, settings, outputs, config_dir)
    with _watched(session, f"train {experiment}", on_event) as session:
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
    request, session = _asked("figure", name, settings, outputs, config_dir)
    with _watched(session, f"figure {name}", on_event) as session:
        return FigureDict(run_request(request, session), partial(request.draw, session))


def reproduce(
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl reproduce only=[...] scale=...` as a dict: all checks, all figures, and where the report is."""
    request, session = _asked("reproduce", "", settings, outputs, config_dir)
    with _watched(session, "reproduce", on_event) as session:
        return ResultDict(run_many.reproduce(request, session))


def list_runs(outputs: Folder = "outputs", **settings: Any) -> list[run_list.ListedRun]:
    """`icl runs KEY=VALUE ...` as a list, the newest first. Each has `.path`, `.name`, `.status`, `.metrics`,
    `.config`, and `.load()`, which is load_run; `.document()` is a row for pandas.DataFrame."""
    return run_list.list_runs(outputs, settings)  # type: ignore[arg-type]


def load_run(path: Folder) -> TrainedRun:
    """Return the finished run in folder `path`: `.model(x, y, x_query)` predicts, `.law` draws prompts;
    `.A` of shape (seeds, layers, d, d), `.B`, `.Sigma`, `.weights`, `.metrics`, `.config`, `.to_pandas()`,
    and `.curve("loss")`: the steps, and values of shape (seeds, steps)."""
    from icl.training.load import load_run as load

    return load(path)  # type: ignore[arg-type]


def exact_risk(P: ArrayLike, Q: ArrayLike, **task: Any) -> float:
    """Risk of linear attention with P and Q, (p, p) of one layer or (L, p, p) of a stack, without sampling
    error; `task` sets the law as `icl train task.KEY=VALUE` does (context, eigenvalues, covariance, ...).

    Raises icl.errors.InputError where no exact form exists.
    """
    from icl.models.exact_risk import exact_risk as risk

    return risk(P, Q, **task)


def _asked(
    verb: str, name: str, settings: Mapping[str, Any], outputs: Folder | None, config_dir: Folder | None
) -> tuple[Any, Session]:
    """Return the request of a verb and its session."""
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
    return parse(verb, composed, configs) if group else run_many.parse_reproduce(composed, configs)


@contextlib.contextmanager
def _watched(session: Session, what: str, on_event: Listener | None) -> Iterator[Session]:
    """Yield the session with its listener: the caller's, or a bar on a terminal, in the main thread alone."""
    main = threading.current_thread() is threading.main_thread()
    if on_event is not None or not main or not sys.stderr.isatty():
        yield replace(session, on_event=on_event or quiet)
        return
    with Display(what) as display:
        yield replace(session, on_event=display.see)
