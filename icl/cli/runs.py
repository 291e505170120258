"""`icl runs`: the runs of an outputs folder, without Hydra."""

import re
from collections.abc import Sequence
from pathlib import Path

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK, UNEXPECTED
from icl.jobs.stored.run_list import ListedRun, list_runs
from icl.text import brief


def command(args: Sequence[str]) -> int:
    asked = read_arguments(args, sort="", limit="")
    conditions = [arg for arg in asked.others if re.match("[^=]*[<>]", arg)]
    given = [arg.partition("=") for arg in asked.others if arg not in conditions]
    for key, sign, _ in given:
        if not sign:
            raise InputError(f"{key}: icl runs takes KEY=VALUE and conditions such as 'exact_risk<0.2'")
    filters, own = {key.lstrip("+"): value for key, _, value in given}, asked.settings
    if not (own["limit"] or "0").isdecimal():
        raise InputError(f"limit={own['limit']}: must be a whole number")
    most, chosen = int(own["limit"]) if own["limit"] else None, bool(filters or conditions)
    found = list_runs(asked.outputs, filters, conditions=conditions, sort=own["sort"] or None)
    shown = [run for run in found if chosen or not run.run.get("figure")]

    def show() -> None:
        _show(shown[:most], asked.outputs, own["sort"])
        if len(found) > len(shown):
            print(f"and {len(found) - len(shown)} that figures made for themselves (status=done lists them)")

    emit({"runs": [run.document() for run in shown[:most]]}, show, own["format"])
    return OK if shown or not (chosen or own["sort"]) else UNEXPECTED


def _show(runs: Sequence[ListedRun], outputs: Path, metric: str) -> None:
    """Print one line each, with this metric or else the risk: without the words that all share, and with the
    status where one is not done."""
    from icl.cli.show import line, table

    if not runs:
        line(f"no runs found in {outputs / 'runs'}")
        return
    line(f"runs in {outputs / 'runs'}, each in EXPERIMENT/FOLDER")
    names = [run.name.split(" ") for run in runs]
    shared = [word for word in names[0] if len(runs) > 1 and all(word in name for name in names)]
    if shared:
        line(f"all: {' '.join(shared)}")
    rows = [[word for word in name if word not in shared] for name in names]
    risks = [(metric, run.metrics[metric]) if metric else run.risk for run in runs]
    found = {risk[0] for risk in risks if risk}
    head = found.pop() if len(found) == 1 else "risk"
    columns = {"date (UTC)": "", "status": "", "run": "cut", head: ""}
    states = ["stale" if run.stale and run.status == "done" else run.status for run in runs]
    if {*states} == {"done"}:
        del columns["status"]
    cells = [
        [
            run.date[5:16].replace("T", " "),  # which is all that tells runs apart
            *([state] if "status" in columns else []),
            " ".join(row) or "as shipped",
            f"{f'{risk[0]} ' if found else ''}{brief(risk[1])}" if risk else "",
            run.fingerprint,
        ]
        for run, state, row, risk in zip(runs, states, rows, risks, strict=True)
    ]
    table({**columns, "folder": ""}, cells)
    for run in runs:
        if run.why:
            line(f"{run.fingerprint}: {run.why}")
    if "stale" in states:
        line("stale: made with other code than today's; the same command makes it again")
