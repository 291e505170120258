"""`icl runs`: the runs of an outputs folder, without Hydra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK
from icl.jobs.stored.run_list import ListedRun, is_condition, list_runs
from icl.loggers.names import words_of
from icl.text import brief

USAGE = """usage: icl runs [KEY=VALUE ...] ['METRIC<X' ...] [sort=METRIC] [limit=N] [all=true]
                [format=text|json] [paths.outputs=DIR]

Lists training runs, the newest first: date, status, what was typed, the final risk, and the folder.
KEY=VALUE keeps the runs whose config has that value, or one of several; 'METRIC<X' (<=, >, >=) those
whose mean over the seeds is below X; sort=METRIC lists the least first. Runs that figures have
trained for themselves are counted in one line; all=true lists them, too.

examples:
  icl runs
  icl runs experiment=ahn/theorem3 optimizer.lr=0.02,0.05
  icl runs scale=laptop status=done 'exact_risk<0.2' sort=exact_risk limit=5
"""
HEADS = ("date (UTC)", "status", "typed", "final risk", "folder")


def runs_command(verb: str, args: Sequence[str]) -> int:
    asked = read_arguments(USAGE, args, all="false", sort="", limit="")
    conditions = [arg for arg in asked.others if is_condition(arg)]
    given = [arg.partition("=") for arg in asked.others if arg not in conditions]
    for key, sign, _ in given:
        if not sign:
            raise InputError(f"{key}: icl runs takes KEY=VALUE and conditions such as 'exact_risk<0.2'")
    filters = {key.lstrip("+"): value for key, _, value in given}
    if not (asked.settings["limit"] or "0").isdecimal():
        raise InputError(f"limit={asked.settings['limit']}: must be a whole number")
    most = int(asked.settings["limit"]) if asked.settings["limit"] else None
    sort = asked.settings["sort"] or None
    found = list_runs(asked.outputs, filters, conditions=conditions, sort=sort)
    shown = found
    if not filters and not conditions and asked.settings["all"] == "false":
        shown = [run for run in found if not run.run.get("figure")]
    document = {"runs": [run.document() for run in shown[:most]]}
    hidden = len(found) - len(shown)
    emit(document, lambda: _show(shown[:most], asked.outputs, hidden), asked.settings["format"])
    return OK


def _show(runs: Sequence[ListedRun], outputs: Path, hidden: int) -> None:
    print(f"runs in {outputs / 'runs'}" if runs else f"no such runs in {outputs / 'runs'}")
    rows = [HEADS, *(_cells(run, outputs) for run in runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, why in zip(rows if runs else [], ["", *(run.why for run in runs)], strict=False):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip(), *([f"    {why}"] if why else []), sep="\n")
    if hidden:
        print(f"and {hidden} that figures made for themselves (all=true lists them)")
    if any(run.stale for run in runs):
        print("stale: made with other code than today's; the same command makes it again")


def _cells(run: ListedRun, outputs: Path) -> tuple[str, ...]:
    return (
        run.date[:16].replace("T", " "),
        f"{run.status}, stale" if run.stale else run.status,
        words_of(run.run.get("overrides", ())),
        f"{run.risk[0]} {brief(run.risk[1])}" if run.risk else "",
        run.path.relative_to(outputs / "runs").as_posix(),
    )
