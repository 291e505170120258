"""Metrics of a run: their file, kinds, means and intervals over seeds, and the steps at which they are kept.

metrics.csv has one row per (step, seed), with floats that read back bit for bit. Where a seed is undefined so
is a mean: it is not averaged out.
"""

import csv
import io
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icl.errors import whole

Row = Mapping[str, Any]
Table = dict[str, list[Any]]

# The risks, as a sweep's table shows them: those that are defined.
RISKS = ("exact_risk", "risk_estimate", "risk_on_s", "risk_old", "risk_new")
FEWEST = 5  # seeds, from which on an interval is Student's
RANGE, STUDENT = "range", "95 % Student's t"
_FINAL = ("exact_risk", "risk_on_s", "risk_estimate", "loss")
_KINDS = {
    "loss": "training",  # on the prompts trained on; the exact risk where train.estimator=population
    "exact_risk": "exact",  # of these very weights under this very law
    "risk_on_s": "projected",  # exact, but of the weights' projection on a set
    "risk_estimate": "sampled",  # on prompts that training never sees
}
MEANINGS = {  # of names that do not say it; S: all layers are multiples of Sigma^-1
    "dist_preconditioned": "the largest distance of a layer's A from the multiples of Sigma^-1, relative",
    "dist_plain": "the largest distance of a layer's A from the multiples of the identity, relative",
    "risk_on_s": "the exact risk of the nearest weights whose layers are multiples of Sigma^-1 (the set S)",
    "risk_plain_batch": "the mean squared error on one batch that was drawn without importance weights",
}
_OF_ONE_MATRIX = re.compile(r"_[ABPQ]\d+(_|$)")


def metrics_csv(rows: Iterable[Row], columns: Sequence[str] | None = None) -> str:
    """`columns` default to the first row's; what a row lacks, or None, is left empty."""
    rows, lines = list(rows), io.StringIO()
    names = list(rows[0] if rows else ()) if columns is None else columns
    writer = csv.DictWriter(lines, names, lineterminator="\n")  # which refuses other columns
    if names:
        writer.writeheader()
    for row in rows:
        cells = {name: cell.item() if hasattr(cell, "item") else cell for name, cell in row.items()}
        writer.writerow(cells)
    return lines.getvalue()


def parse_metrics(text: str) -> Table:
    """Return columns by name; an empty cell is None, a whole number an int."""
    names, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    return {name: [_parse(row[i]) for row in rows] for i, name in enumerate(names)}


def _parse(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None


def kind_of(metric: str, errors: Sequence[float | None] = ()) -> str:
    """exact | projected | sampled | training, or "" for what is neither risk nor gradient.

    `errors` are the metric's standard errors: a gradient's norm and the risks on old and new tasks are exact
    where they are zero.
    """
    if metric.startswith("gradient_norm") or (errors and metric in ("risk_old", "risk_new")):
        return "sampled" if any(errors) else "exact"
    return _KINDS.get(metric, "")


def of_one_matrix(metric: str) -> bool:
    """Return whether a metric is of one matrix, such as dist_plain_A0: it is stored and not shown."""
    return bool(_OF_ONE_MATRIX.search(metric))


def final_risk(means: Mapping[str, float | None]) -> tuple[str, float] | None:
    """Return the name and the value of a run's final risk: exact, projected or sampled, or else the loss."""
    return next(((name, value) for name in _FINAL if (value := means.get(name)) is not None), None)


def aggregate(by_seed: Mapping[str, float | None]) -> dict[str, Any]:
    """Return `{"mean", "by_seed"}`."""
    values = {str(k): float(v) if v is not None and math.isfinite(v) else None for k, v in by_seed.items()}
    defined = [value for value in values.values() if value is not None]
    known = 0 < len(defined) == len(values)
    return {"mean": math.fsum(defined) / len(defined) if known else None, "by_seed": values}


def seed_interval(values: Sequence[float | None]) -> dict[str, Any]:
    """Return `{"mean", "low", "high", "interval"}`: the range of two to four seeds, from five on Student's
    interval, which is named; one seed has none. How often it covers the mean: docs/sweeps.md."""
    found = aggregate({str(i): value for i, value in enumerate(values)})
    mean, defined = found["mean"], list(found["by_seed"].values())
    count = len(defined)
    if mean is None or count == 1:
        return {"mean": mean, "low": None, "high": None, "interval": ""}
    if count < FEWEST:
        return {"mean": mean, "low": min(defined), "high": max(defined), "interval": RANGE}
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, 0.975)) * statistics.stdev(defined) / math.sqrt(count)
    return {"mean": mean, "low": mean - half, "high": mean + half, "interval": STUDENT}


def log_spaced_steps(total: int, count: int) -> list[int]:
    """At most `count` steps from 1 to `total`, evenly spaced in the logarithm as far as whole steps allow."""
    import numpy as np

    whole("steps", total, 1)
    whole("count", count, 1)
    if count == 1:
        return [total]
    return sorted({round(step) for step in np.geomspace(1, total, count).tolist()})
