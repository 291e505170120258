"""The results of a sweep in the terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from icl.cli.show import line, table
from icl.loggers.names import short_keys
from icl.metrics import RISKS, kind_of
from icl.text import measurement
from icl.verdicts import short

METRICS = (*RISKS, "loss", "dist_preconditioned")  # of which a table has the first two; sweep.csv has all
MOST = 3
SHOWN = 2  # metrics of a table, which fit 80 columns
FEW = 24  # jobs that are shown one by one

Document = Mapping[str, Any]


def show(document: Document) -> None:
    """Show what checks have decided, or the means over seeds of each configuration; the best, and what
    failed."""
    results, summary, best = document.get("results", []), document["summary"], document["best"]
    keys = _short([*results, *summary])
    trained = [(r["overrides"], v) for r in results for v in r["document"].get("verdicts", [])]
    judged = [(one["overrides"], one["document"]) for one in results if "verdict" in one["document"]]
    if judged and len(results) <= FEW:
        rows = [[words(job, keys), short(found), measurement(found)] for job, found in judged]
        table({"job": "wrapped", "verdict": "", "measured": "wrapped"}, rows)
    else:
        _configurations(summary, keys, best["metric"] if best else "")
    for result in results:
        for warning in result["document"].get("warnings", []):
            line(f"warning: {words(result['overrides'], keys)}: {warning}", style="yellow")
    line(f"sweep: {document['name']}")
    counts = [f"{count} {state}" for state, count in document["states"].items() if count]
    line(f"{document['jobs']} jobs: {', '.join(counts)}")
    for check in dict.fromkeys(verdict["check"] for _, verdict in trained):
        of_check = [(words(job, keys), verdict) for job, verdict in trained if verdict["check"] == check]
        found = Counter(verdict["verdict"] for _, verdict in of_check)
        counts = [f"{n} {one.rstrip('s') if n > 1 else one}" for one, n in found.items()]
        line(f"{check} at the trained weights: {', '.join(counts)}")
        other = [job for job, verdict in of_check if verdict["verdict"] != verdict["expected"]]
        if other:
            line(f"  other than expected: {'; '.join(other[:MOST])}{' ..' if other[MOST:] else ''}")
    if document["states"]["stale"]:
        line("stale: made with other code than today's; the same sweep makes them again")
    if best is not None and best["overrides"]:
        passed = f" (not all have {' or '.join(best['passed'])})" if best["passed"] else ""
        at = f"{words(best['overrides'], keys)}: {_interval(best)}"
        line(f"best of {best['of']} by {best['metric']}{passed}: {at}")
    for failure in document["failures"]:
        job = words(failure["overrides"], _short([failure]) | keys)
        line(f"failed: {job}: {failure['error']}\n  {failure['run_dir']}", style="red")
    line(f"table: {document['sweep_csv']}")


def words(overrides: Sequence[str], keys: Mapping[str, str]) -> str:
    """Return overrides with short keys."""
    pairs = (override.lstrip("+").partition("=") for override in overrides)
    return " ".join(f"{keys[key]}={value}" if sign else key for key, sign, value in pairs)


def _short(rows: Sequence[Document]) -> dict[str, str]:
    given = [one.lstrip("+") for row in rows for one in row["overrides"]]
    return short_keys(dict.fromkeys(one.partition("=")[0] for one in given))


def _configurations(summary: Sequence[Document], keys: Mapping[str, str], first: str) -> None:
    """Print means and intervals by configuration: of the metric that names the best, and of another."""
    known = {row["metric"] for row in summary if row["mean"] is not None}
    metrics = [metric for metric in dict.fromkeys([first, *METRICS]) if metric in known][:SHOWN]
    found: dict[str, dict[str, Document]] = {}
    for row in summary:
        found.setdefault(words(row["overrides"], keys), {})[row["metric"]] = row
    if not metrics:
        return
    heads = [f"{metric}\n{kind_of(metric)}".rstrip() for metric in metrics]
    cells = [[name or "all", *(_interval(of.get(one, {})) for one in metrics)] for name, of in found.items()]
    table({"": "wrapped", **dict.fromkeys(heads, "right")}, cells)
    names = dict.fromkeys(row["interval"] for row in summary if row["interval"])
    if names:
        line(f"means over seeds; in brackets: {', '.join(names)}")


def _interval(row: Document) -> str:
    if row.get("mean") is None:
        return "-"
    between = "" if row["low"] is None else f" ({row['low']:.3g}, {row['high']:.3g})"
    return f"{row['mean']:.4g}{between}"
