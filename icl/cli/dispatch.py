"""Verbs that run something: argv is parsed and composed, one handler is run, its document printed."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from icl.cli import bench as bench_lines
from icl.cli import hydra, show
from icl.cli import sweep as swept_runs
from icl.cli.display import Display
from icl.cli.flags import chosen, parse_flags
from icl.cli.output import emit, stdout_kept_for_results
from icl.config.compose import Composed, compose, multirun_meant
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, keep_caches_in, parse_session
from icl.errors import InputError
from icl.jobs.execution import hydra_multirun as hydra_run
from icl.jobs.execution import multirun, reproduce, run_all
from icl.jobs.execution.cluster import parse_cluster
from icl.jobs.execution.workers import jobs_of
from icl.jobs.exit_codes import FAILED, OK, combine, exit_code
from icl.jobs.requests import bench
from icl.jobs.requests.parse import OWN, parse
from icl.jobs.requests.request import Document, Request, run_request
from icl.jobs.stored import report, sweep_figure
from icl.jobs.stored import sweep_status as stored_sweep
from icl.runs.atomic import with_room

COMMON = ("scale", "format", "force", "logger", "jobs", "cluster", "verbose", "paths.outputs")  # with =all


@dataclass(frozen=True)
class VerbHandler:
    """Functions of a verb: parse its config, run the request, show the document, choose the exit code."""

    parse: Callable[[Composed, ConfigDirs], tuple[Any, Session]]
    run: Callable[[Any, Session], Any]  # a document, or a pair with what else is shown
    show: Callable[..., None]  # of the document; also given the request, and whether verbose=true
    code: Callable[[Document], int] = exit_code
    title: Callable[[Any], str] | None = None  # of the progress bar; without one there is none
    is_swept: bool = False  # takes -m
    uses_cluster: bool = False  # sends its parts to a cluster itself
    example: str = ""  # of a choice that is required


def _parse_bench(composed: Composed, configs: ConfigDirs) -> tuple[bench.BenchRequest, Session]:
    return bench.parse(composed.settings), Session(
        Path(composed.settings["paths"]["outputs"]), configs=configs
    )


def _run_bench(request: bench.BenchRequest, _: Session) -> Document:
    with stdout_kept_for_results():
        return bench.run_benchmarks(request, bench_lines.show_row)


def _title(request: Request) -> str:
    return f"{request.kind} {request.id}"


HANDLERS = {
    "train": VerbHandler(
        partial(parse, "train"),
        run_request,
        lambda document, request, _: show.run(document, request.id),
        title=_title,
        is_swept=True,
    ),
    "check": VerbHandler(
        partial(parse, "check"),
        run_request,
        lambda document, _, verbose: show.check(document, verbose=verbose),
        title=_title,
        is_swept=True,
        example="ahn/theorem1",
    ),
    "figure": VerbHandler(
        partial(parse, "figure"),
        run_request,
        lambda document, _, verbose: show.figures([document], verbose=verbose),
        title=_title,
        is_swept=True,
        example="ahn/fig1",
    ),
    "reproduce": VerbHandler(
        reproduce.parse,
        reproduce.reproduce,
        lambda document, *_: show.reproduced(document),
        title=lambda _: "",
        uses_cluster=True,
    ),
    "report": VerbHandler(
        report.parse,
        report.build_report,
        lambda found, *_: show.report(*found),
        lambda _: OK,
    ),
    "sweep": VerbHandler(
        stored_sweep.parse,
        lambda request, _: stored_sweep.sweep_status(request),
        lambda document, *_: swept_runs.show(document),
        lambda document: FAILED if document["failed"] else OK,
    ),
    "bench": VerbHandler(
        _parse_bench, _run_bench, lambda document, *_: bench_lines.show(document), lambda _: OK
    ),
}
SWEEP_FIGURE = VerbHandler(
    sweep_figure.parse,
    sweep_figure.draw_sweep,
    lambda document, *_: show.figures([document]),
    lambda _: OK,
    title=lambda _: "figure sweep",
)


def command(verb: str, args: Sequence[str]) -> int:
    """Run a verb's handler, or one of three that are not a single handler: Hydra's output, =all and -m."""
    flags, handler = parse_flags(verb, args), HANDLERS[verb]
    configs = ConfigDirs.of(flags.config_dir)
    if any(getattr(flags, name) for name in hydra.FLAGS):
        hydra.show(verb, flags, configs)
        return OK
    swept = flags.multirun or "hydra.mode=MULTIRUN" in flags.overrides  # an experiment may set it too
    _refuse(swept and not handler.is_swept, verb)
    name, overrides = verb, flags.overrides
    if handler.example:
        which = chosen(verb, overrides)
        if which is None:
            paper = handler.example.partition("/")[0]
            example = f"{verb}={handler.example}, {verb}={paper}/all, {verb}=all"
            raise InputError(f"{verb}: choose one: {example} (icl list names {len(configs.options(verb))})")
        if (verb, which) == ("figure", "sweep"):
            _refuse(swept, "figure=sweep", "plots a sweep")
            name, handler, overrides = "sweep", SWEEP_FIGURE, _drop_key(verb, overrides)
        elif which == "all" or which.endswith("/all"):
            _refuse(swept, f"{verb}={which}")
            return _many(verb, which, overrides, configs)
    composed = None if swept else _compose_one(name, handler, overrides, configs)
    if composed is None:
        _refuse(not handler.is_swept, verb)
        return _multirun(verb, flags, configs)
    request, session = handler.parse(composed, configs)
    verbose = composed.settings.get("verbose") is True
    with contextlib.ExitStack() as stack:
        if handler.title is not None:
            display = Display(handler.title(request), verbose=verbose)
            stack.enter_context(_display_progress(display, session))
            session = replace(session, on_event=display.see)
        found = handler.run(request, session)
    document = found[0] if isinstance(found, tuple) else found
    if not document:  # of a run that another process keeps, and reports
        return OK
    emit(document, lambda: handler.show(found, request, verbose), composed.settings["format"])
    return handler.code(document)


def _compose_one(
    name: str, handler: VerbHandler, overrides: Sequence[str], configs: ConfigDirs
) -> Composed | None:
    """Compose the config; return None where it turns out to mean a multirun."""
    try:
        composed = compose(configs, name, overrides)
    except InputError:
        if multirun_meant(configs, name, overrides):  # then several values are no mistake
            return None
        raise
    by_hydra = not (handler.uses_cluster and composed.settings["cluster"] is not None)
    return None if composed.multirun and by_hydra else composed


def _drop_key(key: str, overrides: Sequence[str]) -> list[str]:
    return [override for override in overrides if override.partition("=")[0].lstrip("+") != key]


def _refuse(wrong: bool, what: str, why: str = "runs several jobs already") -> None:
    if wrong:
        raise InputError(f"{what}: {why}; -m sweeps the settings of one")


def _many(verb: str, which: str, overrides: Sequence[str], configs: ConfigDirs) -> int:
    common = ("check.seed", *COMMON) if verb == "check" else (*COMMON, "from")
    kept = _drop_key(verb, overrides)
    for override in kept:
        if override.partition("=")[0] not in common and not override.startswith("cluster."):
            raise InputError(f"{override}: with {verb}={which} only {', '.join(common)} may be set")
    composed = compose(configs, verb, [override for override in kept if not override.startswith("check.")])
    session, jobs = parse_session(verb, OWN[verb], composed, configs), jobs_of(composed.settings["jobs"])
    cluster = parse_cluster(composed.settings["cluster"])
    keep_caches_in(session.outputs)
    tasks = run_all.tasks_of(verb, which, kept, configs)
    display = Display(quiet=True, verbose=composed.settings.get("verbose") is True)
    with _display_progress(display, session):
        document, failed = run_all.run_all(verb, tasks, jobs, display.see, cluster)
    shown = show.checks if verb == "check" else show.figures
    emit(document, lambda: shown(document[f"{verb}s"]), composed.settings["format"])
    return combine([exit_code(document), *[FAILED] * failed])


def _multirun(verb: str, flags: argparse.Namespace, configs: ConfigDirs) -> int:
    started, sweep = time.monotonic(), multirun.Sweep(verb, configs)
    attempt = multirun.JobFunction(verb, configs, os.getpid())
    try:
        with stdout_kept_for_results(), swept_runs.Watch(sweep):
            ran = hydra_run.run(verb, flags.overrides, configs, attempt, sweep)
    except OSError:
        with with_room(sweep.outputs):  # which Hydra and Lightning know nothing of
            raise
    document = multirun.summarize(sweep, ran.results, time.monotonic() - started)
    emit(document, lambda: swept_runs.show(document), sweep.form)
    return combine([result["exit_code"] for result in document["results"]])


@contextlib.contextmanager
def _display_progress(display: Display, session: Session) -> Iterator[None]:
    """Show the progress of a handler on the terminal. SystemExit never leaves it."""
    keep_caches_in(session.outputs)
    try:
        with stdout_kept_for_results(), display:
            yield
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error.code}") from error
