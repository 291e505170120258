"""Run every check, then every figure with the training runs it needs, then write the report. A failure stops
nothing else, and the same call continues after an interruption."""

from __future__ import annotations

import time

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import one_line
from icl.jobs.execution.run_many import jobs_of, run_all
from icl.jobs.requests.request import Document
from icl.jobs.stored.report import SHOWN, ReportRequest, blank_entries, build_report, papers_of

OWN = ("only", "jobs")


def parse(composed: Composed, configs: ConfigDirs) -> tuple[tuple[ReportRequest, int], Session]:
    """Return what the page will be of, the number of worker processes (none if 1), and the session."""
    session, settings = parse_session("reproduce", OWN, composed, configs), composed.settings
    papers, jobs = papers_of(settings["only"], configs), jobs_of(settings["jobs"])
    return (ReportRequest(settings["scale"], papers), jobs), session


def reproduce(asked: tuple[ReportRequest, int], session: Session) -> Document:
    (request, jobs), started = asked, time.monotonic()
    session.info(f"reproduce at scale={request.scale}: looking up stored results")
    entries, failures, page = blank_entries(request, session.configs), [], None
    ids = {kind.group: [one.id for one in entries if one.group == kind.group] for kind in SHOWN}
    try:
        found = run_all(ids, [f"scale={request.scale}"], session, jobs, one_stops_all=False)
    finally:  # also of what an interruption leaves
        try:
            page = build_report(request, session)[0]["report"]
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            failures.append({"group": "report", "id": "report", "error": reason})
    failures = [*found["failures"], *failures]
    return {**found, "report": page, "failures": failures, "seconds": time.monotonic() - started}
