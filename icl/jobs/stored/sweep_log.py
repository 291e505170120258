"""What W&B shows of a sweep: its table by configuration, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl.config.objects import instantiate, target_class
from icl.loggers.documents import log_document
from icl.loggers.names import SWEEP, short_keys
from icl.runs import atomic
from icl.runs.fingerprint import SEEDS
from icl.runs.sweeps import DEFAULT_METRICS, Outcome, StoredSweep

PICTURE = "sweep.png"
Row = dict[str, Any]


class _Run(NamedTuple):
    """What names the run of a sweep."""

    id: str
    identity: str
    scale: str
    kind: str = "sweep"


def log_sweep(
    stored: StoredSweep, outcomes: Sequence[Outcome], document: Mapping[str, Any], scale: str, session: Any
) -> None:
    """Show a sweep in W&B, if the logger is W&B's; the sweep's folder gets its picture."""
    if session.logger.get("wandb") is None:
        return
    rows = rows_of(stored, outcomes, document["summary"])
    id = next(job.id for job in stored.jobs)
    log_document(
        _Run(id, stored.folder.name, scale),
        session,
        config={"experiment": id, "keys": stored.keys},
        summary={state: count for state, count in document["states"].items() if count},
        table=("sweep", SWEEP, [[row[name] for name in SWEEP] for row in rows]),
        picture=_picture(stored, rows),
        name=f"sweep {document['name']}",
    )


def rows_of(stored: StoredSweep, outcomes: Sequence[Outcome], summary: Sequence[Row]) -> list[Row]:
    """Return a row for each configuration and metric. `x` is the value of the first key where all are
    positive, else the configuration's number; `rest` has the other keys."""
    short, levels = short_keys(stored.keys), _levels(stored, outcomes)
    settings = list(dict.fromkeys(tuple(row["overrides"]) for row in summary))
    values = [[_pair(override) for override in setting] for setting in settings]
    numbers = [_positive(pairs[0][1]) if pairs else None for pairs in values]
    by_value = all(numbers) and len({pairs[0][0] for pairs in values}) == 1
    about: dict[tuple[str, ...], Row] = {}
    for number, (setting, pairs) in enumerate(zip(settings, values, strict=True), 1):
        texts = [f"{short.get(key, key)}={value}" for key, value in pairs]
        about[setting] = {
            "setting": " ".join(texts) or "all",
            "key": short.get(pairs[0][0], pairs[0][0]) if by_value else "setting",
            "x": numbers[number - 1] if by_value else number,
            "rest": " ".join(texts[1:]) if by_value else "",
        }
    return [
        {
            **about[setting := tuple(row["overrides"])],
            **{name: row[name] for name in ("metric", "mean", "low", "high", "count")},
            "theory": levels.get(setting) if row["metric"] == "exact_risk" else None,
        }
        for row in summary
    ]


def _levels(stored: StoredSweep, outcomes: Sequence[Outcome]) -> dict[tuple[str, ...], float]:
    """Return the exact optimum of each configuration, by what shows levels of its run."""
    if stored.kind != "train":
        return {}
    from icl.callbacks.metrics import WeightsCallback
    from icl.training.load import load_run

    found: dict[tuple[str, ...], float] = {}
    for job, outcome in zip(stored.jobs, outcomes, strict=True):
        setting = tuple(one for one in stored.own_overrides(job) if _pair(one)[0] not in SEEDS)
        if setting not in found and outcome.state == "done":
            run = load_run(outcome.path)
            for key, node in run.config["callbacks"].items():
                if node and issubclass(target_class(key, node["_target_"]), WeightsCallback):
                    levels = instantiate(key, node).levels(run.transformer, run.law)
                    found |= {setting: levels["level/optimum"]} if "level/optimum" in levels else {}
    return found


def _picture(stored: StoredSweep, rows: Sequence[Row]) -> tuple[str, Path] | None:
    for metric in (stored.metric, *DEFAULT_METRICS):
        drawn = [row for row in rows if row["metric"] == metric and row["mean"] is not None]
        if drawn:
            from icl.figures.sweep import png_of_sweep

            path = stored.folder / PICTURE
            atomic.write_once(stored.outputs, path, png_of_sweep(drawn))
            return f"{metric} by {drawn[0]['key']}", path
    return None


def _pair(override: str) -> tuple[str, str]:
    key, _, value = override.lstrip("+").partition("=")
    return key, value.strip("'\"")


def _positive(value: str) -> float | None:
    try:
        return number if (number := float(value)) > 0 else None
    except ValueError:
        return None
