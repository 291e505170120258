"""The verbs that run something: argv is parsed and composed, one job is called, its document printed."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

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

SWEPT = ("train", "check", "figure")  # take -m
COMMON = ("scale", "format", "force", "logger", "jobs", "cluster", "verbose", "paths.outputs")  # with =all
EXAMPLE = {"check": "ahn/theorem1", "figure": "ahn/fig1"}


def command(verb: str, args: Sequence[str]) -> int:
    flags = parse_flags(verb, args)
    configs = ConfigDirs.of(flags.config_dir)
    if any(getattr(flags, name) for name in hydra.FLAGS):
        hydra.show(verb, flags, configs)
        return OK
    swept = flags.multirun or "hydra.mode=MULTIRUN" in flags.overrides  # an experiment may say it too
    _refuse(swept and verb not in SWEPT, verb)
    if verb in EXAMPLE:
        which = chosen(verb, flags.overrides)
        if which is None:
            example = f"{verb}={EXAMPLE[verb]}, {verb}={EXAMPLE[verb].partition('/')[0]}/all, {verb}=all"
            raise InputError(f"{verb}: choose one: {example} (icl list names {len(configs.options(verb))})")
        if (verb, which) == ("figure", "sweep"):
            _refuse(swept, "figure=sweep", "draws a sweep")
            return _drawn_sweep(flags.overrides, configs)
        if which == "all" or which.endswith("/all"):
            _refuse(swept, f"{verb}={which}")
            return _many(verb, which, flags.overrides, configs)
    if swept:
        return _multirun(verb, flags, configs)
    try:
        composed = compose(configs, verb, flags.overrides)
        on_cluster = verb == "reproduce" and composed.settings["cluster"] is not None  # not by Hydra
        swept = composed.multirun and not on_cluster
    except InputError:
        swept = multirun_meant(configs, verb, flags.overrides)  # then several values are no mistake
        if not swept:
            raise
    if swept:
        _refuse(verb not in SWEPT, verb)
        return _multirun(verb, flags, configs)
    run = {"reproduce": _reproduce, "report": _report, "bench": _bench, "sweep": _sweep}.get(verb)
    return _one(verb, composed, configs) if run is None else run(composed, configs)


def _refuse(wrong: bool, what: str, why: str = "runs many already") -> None:
    if wrong:
        raise InputError(f"{what}: {why}; -m is for the settings of one")


def _one(verb: str, composed: Composed, configs: ConfigDirs) -> int:
    request, session = parse(verb, composed, configs)
    display = Display(f"{request.kind} {request.id}", verbose=_verbose(composed))
    document = _done(lambda told: run_request(request, told), session, display)
    if not document:  # of a run that another process keeps, and tells of
        return OK
    verbose = _verbose(composed)
    emit(document, lambda: _show_one(document, request, verbose), composed.settings["format"])
    return exit_code(document)


def _show_one(document: Document, request: Request, verbose: bool) -> None:
    if request.kind == "train":
        show.run(document, request.id)
    elif request.kind == "check":
        show.checks([document], full=True, verbose=verbose)
    else:
        show.figures([document])


def _many(verb: str, which: str, overrides: Sequence[str], configs: ConfigDirs) -> int:
    common = ("check.seed", *COMMON) if verb == "check" else COMMON
    kept = [override for override in overrides if override.partition("=")[0].lstrip("+") != verb]
    for override in kept:
        if override.partition("=")[0] not in common and not override.startswith("cluster."):
            raise InputError(f"{override}: with {verb}={which} only {', '.join(common)} may be set")
    composed = compose(configs, verb, [override for override in kept if not override.startswith("check.")])
    session, jobs = parse_session(verb, OWN[verb], composed, configs), jobs_of(composed.settings["jobs"])
    cluster = parse_cluster(composed.settings["cluster"])
    keep_caches_in(session.outputs)
    tasks = run_all.tasks_of(verb, which, kept, configs)
    display = Display(quiet=True, verbose=_verbose(composed))
    failed = 0

    def job(told: Session) -> Document:
        nonlocal failed
        document, failed = run_all.run_all(verb, tasks, jobs, told.tell, cluster)
        return document

    document = _done(job, session, display)
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


def _reproduce(composed: Composed, configs: ConfigDirs) -> int:
    request, session = reproduce.parse(composed, configs)
    display = Display(verbose=_verbose(composed))
    document = _done(lambda told: reproduce.reproduce(request, told), session, display)
    emit(document, lambda: show.reproduced(document), composed.settings["format"])
    return exit_code(document)


def _report(composed: Composed, configs: ConfigDirs) -> int:
    request, session = report.parse(composed, configs)
    document, told = report.build_report(request, session)
    emit(document, lambda: show.report(document, told), composed.settings["format"])
    return OK


def _sweep(composed: Composed, configs: ConfigDirs) -> int:
    request, _ = stored_sweep.parse(composed, configs)
    document = stored_sweep.sweep_status(request)
    emit(document, lambda: swept_runs.show(document), composed.settings["format"])
    return FAILED if document["failed"] else OK


def _drawn_sweep(overrides: Sequence[str], configs: ConfigDirs) -> int:
    kept = [override for override in overrides if override.partition("=")[0].lstrip("+") != "figure"]
    composed = compose(configs, "sweep", kept)
    request, session = sweep_figure.parse(composed, configs)
    keep_caches_in(session.outputs)
    document = sweep_figure.draw_sweep(request, session)
    emit(document, lambda: show.figures([document]), composed.settings["format"])
    return OK


def _bench(composed: Composed, configs: ConfigDirs) -> int:
    request = bench.parse(composed.settings)
    with stdout_kept_for_results():
        document = bench.run_benchmarks(request, bench_lines.tell)
    emit(document, lambda: bench_lines.show(document), composed.settings["format"])
    return OK


def _done(job: Callable[[Session], Document], session: Session, display: Display) -> Document:
    """Run a job with progress on the terminal and return its document. SystemExit never leaves it."""
    keep_caches_in(session.outputs)
    try:
        with stdout_kept_for_results(), display:
            return job(replace(session, tell=display.see))
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error.code}") from error


def _verbose(composed: Composed) -> bool:
    return composed.settings.get("verbose") is True
