"""`icl runs`: the runs of an outputs folder, and two of them side by side, without Hydra."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from icl.cli.output import emit
from icl.config.search_path import SCALES, ConfigDirs
from icl.errors import InputError, one_of
from icl.jobs.exit_codes import OK
from icl.jobs.stored.run_list import ListedRun, RunList, compare, find_run, listed_runs
from icl.runs.documents import dumps
from icl.text import brief

USAGE = """usage: icl runs [KEY=VALUE ...] [all=true] [verbose=true] [format=text|json] [paths.outputs=DIR]
       icl runs compare A B [format=text|json] [paths.outputs=DIR]

Lists training runs, the newest first: date, status, the settings that differ between the runs of
an experiment, the final risk, and the folder. KEY=VALUE keeps the runs whose config has that value.
Runs that figures have trained for themselves are counted in one line; all=true lists them, too.

examples:
  icl runs
  icl runs experiment=ahn/theorem3 optimizer.lr=0.02
  icl runs scale=laptop model.layers=3 status=done
  icl runs compare 95e337 outputs/runs/ahn/theorem3/13fcad8a1663
"""
NEWEST = 200  # runs in the text, unless all=true
_STALE = "stale: made with other code than today's; the same command makes it again"


def runs_command(verb: str, args: Sequence[str]) -> int:
    if {"--help", "-h"} & set(args):
        print(USAGE, end="")
        return OK
    settings = {"format": "text", "all": "false", "verbose": "false"}
    settings["paths.outputs"] = ConfigDirs().default_outputs()
    named: list[str] = []
    filters: dict[str, str] = {}
    for arg in args:
        key, given, value = arg.partition("=")
        if given and key in settings:
            settings[key] = value.strip("'\"")
        elif given and not named:
            filters[key.lstrip("+")] = value
        else:
            named.append(arg)
    one_of("format", settings["format"], ("text", "json"))
    for key in ("all", "verbose"):
        one_of(key, settings[key], ("true", "false"))
    outputs = Path(settings["paths.outputs"]).expanduser().absolute()
    if named:
        document = _compared(named, filters, outputs)
        emit(document, lambda: _show_both(document), settings["format"])
        return OK
    if "scale" in filters:
        one_of("scale", filters["scale"], SCALES)
    every, in_text = settings["all"] == "true", settings["format"] == "text"
    found = listed_runs(outputs, filters, every=every, most=NEWEST if in_text and not every else None)
    verbose = settings["verbose"] == "true"
    show = _show_json if settings["format"] == "json" else partial(_show, verbose=verbose)
    emit({}, lambda: show(found, outputs, filters), "text")
    return OK


def _compared(named: Sequence[str], filters: Mapping[str, str], outputs: Path) -> dict[str, Any]:
    if named[0] != "compare":
        raise InputError(f"{named[0]}: icl runs takes KEY=VALUE, or compare A B")
    if len(named) != 3 or filters:
        raise InputError("compare: takes two runs, each a folder or the beginning of a fingerprint")
    return compare(find_run(outputs, named[1], "A"), find_run(outputs, named[2], "B"))


def _show_json(found: RunList, outputs: Path, filters: Mapping[str, str]) -> None:
    """Print the document with a line for each run."""
    runs = ",\n".join(dumps(run.document(), None) for run in found)
    print(f'{{"runs": [{runs}], "figures": {dumps(dict(found.folded), None)}}}')


def _show(found: RunList, outputs: Path, filters: Mapping[str, str], *, verbose: bool) -> None:
    rows = [_cells(run, outputs) for run in found]
    if rows:
        print(f"runs in {outputs / 'runs'}, the newest first")
        heads = ("date (UTC)", "status", "differs", "final risk", "folder")
        for line in _table([heads, *rows], [_below(run, verbose=verbose) for run in found]):
            print(line)
    elif not found.folded:
        print(f"no {'such ' if filters else ''}runs in {outputs / 'runs'}")
    if found.older:
        print(f"... and {found.older} older runs (all=true lists them)")
    if found.folded:
        of_figures = ", ".join(f"{figure} ({count})" for figure, count in sorted(found.folded.items()))
        print(f"and {sum(found.folded.values())} that figures made for themselves (all=true): {of_figures}")
    if any(run.stale for run in found):
        print(_STALE)


def _cells(run: ListedRun, outputs: Path) -> tuple[str, ...]:
    risk = run.stored.risk
    return (
        run.date[:16].replace("T", " "),
        f"{run.status}, stale" if run.stale else run.status,
        run.words,
        "" if risk is None else f"{risk[0]} {brief(risk[1])}",
        run.path.relative_to(outputs / "runs").as_posix(),
    )


def _below(run: ListedRun, *, verbose: bool) -> list[str]:
    """Return the lines below a run: why it failed, and with `verbose` all else that is known of it."""
    lines = [run.stored.why] if run.stored.why else []
    if verbose:
        lines += [f"seeds {list(run.stored.seeds)}, {run.stored.steps} steps"] if run.stored.steps else []
        lines += run.stored.notes
        lines += [f"figure: {run.stored.figure}"] if run.stored.figure else []
        lines += [f"W&B: {run.wandb}" if run.wandb else "W&B: not logged"]
    return lines


def _table(rows: Sequence[Sequence[str]], below: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows in columns; the folder has a line of its own where a terminal is too narrow."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    total = sum(widths) + 2 * len(widths)
    is_narrow = sys.stdout.isatty() and total > shutil.get_terminal_size().columns
    for row, lines in zip(rows, [[], *below], strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells[:-1] if is_narrow else cells).rstrip()
        yield from [f"    {row[-1]}"] if is_narrow else []
        yield from (f"    {line}" for line in lines)


def _show_both(document: Mapping[str, Any]) -> None:
    for side, name, status in zip("ab", document["names"], document["status"], strict=True):
        print(f"{side}: {name} ({status}), {document[side]}")
    for title in ("differs", "metrics"):
        rows = [(key, brief(pair["a"]), brief(pair["b"])) for key, pair in document[title].items()]
        print(f"\n{title}" if rows else f"\n{title}: nothing")
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        for row in rows:
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            print(f"  {'  '.join(cells)}".rstrip())
