"""A sweep as a run in W&B: its table, with the exact optimum of each configuration beside its means."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from icl.config.objects import instantiate, target_class
from icl.loggers.documents import log_document
from icl.loggers.names import SWEEP, short_keys
from icl.runs.fingerprint import SEEDS
from icl.runs.sweeps import Outcome, StoredSweep


def log_sweep(
    stored: StoredSweep, outcomes: Sequence[Outcome], document: Mapping[str, Any], scale: str, session: Any
) -> None:
    """Show a sweep in W&B, if the logger is W&B's."""
    if session.logger.get("wandb") is None:
        return
    from icl.figures.sweep import rows_of

    rows = rows_of(document["summary"], short_keys(stored.keys), _levels(stored, outcomes))
    id = next(job.id for job in stored.jobs)
    log_document(
        SimpleNamespace(kind="sweep", id=id, identity=stored.folder.name, scale=scale),
        session,
        config={"experiment": id, "keys": stored.keys},
        summary={state: count for state, count in document["states"].items() if count},
        table=("sweep", SWEEP, [[row[name] for name in SWEEP] for row in rows]),
        name=f"sweep {document['name']}",
    )


def _levels(stored: StoredSweep, outcomes: Sequence[Outcome]) -> dict[tuple[str, ...], float]:
    """Return the exact optimum of each configuration, by what shows levels of its run."""
    if stored.kind != "train":
        return {}
    from icl.callbacks.metrics import WeightsCallback
    from icl.training.load import load_run

    found: dict[tuple[str, ...], float] = {}
    for job, outcome in zip(stored.jobs, outcomes, strict=True):
        overrides = stored.own_overrides(job)
        setting = tuple(one for one in overrides if one.lstrip("+").partition("=")[0] not in SEEDS)
        if setting not in found and outcome.state == "done":
            run = load_run(outcome.path)
            for key, node in run.config["callbacks"].items():
                if node and issubclass(target_class(key, node["_target_"]), WeightsCallback):
                    exact = instantiate(key, node).exact(run.transformer, run.law)
                    levels = {} if exact is None else exact.levels
                    found |= {setting: levels["level/optimum"]} if "level/optimum" in levels else {}
    return found
