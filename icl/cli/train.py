"""`icl train`: a config becomes a request, the request a plan, the plan a run.

A request is what can be known without torch: who the run is and where its record would be. A finished record
of this very config answers it at once; otherwise the parts are built, which validates them, and only then is
Lightning imported.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from icl.cli.outcome import OK, Outcome, verdict_code, worst
from icl.cli.verdicts import Question, ask, questions, refuse_unanswerable
from icl.config import (
    allowed_target,
    by_content,
    common_settings,
    instantiate,
    keep_caches_in,
    plain,
    resolved_seeds,
    target_class,
)
from icl.errors import InputError
from icl.runs.code import TRAINING, code_digest, targets
from icl.runs.fingerprint import fingerprint
from icl.runs.kinds import error_of, kind_of
from icl.runs.record import RunRecord
from icl.sinks.sink import LoggerSettings

if TYPE_CHECKING:
    from icl.training.job import Follower, TrainingPlan

SCIENCE = ("task", "model", "optimizer", "train")
OWN = (*SCIENCE, "trainer", "callbacks", "name", "seeds", "seed", "checks")
_NOT_STORED = ("format", "force", "verbose", "paths")
_NOT_COMPARED = ("logger", "checks")  # validated in the request itself
_OF_ONE_MATRIX = re.compile(r"_[ABPQ]\d+(_|$)")  # metrics for files rather than for the eye

Cell = tuple[float | None, float | None]  # a number and its standard error


@dataclass(frozen=True)
class Request:
    """One run as asked for."""

    experiment: str
    fingerprint: str
    group: str
    seeds: tuple[int, ...]
    config: Mapping[str, Any] = field(repr=False)
    logger: LoggerSettings
    outputs: Path
    digest: str
    roots: tuple[str, ...]
    force: bool
    scale: str
    questions: tuple[Question, ...]

    def finished(self) -> RunRecord | None:
        """The finished record of this very config, which needs no further validation: it ran."""
        from icl.runs.redact import redact
        from icl.runs.store import RunStore

        store = RunStore(self.outputs)
        record = None if self.force else store.find(self.experiment, self.fingerprint, self.digest)
        if record is None or record.path != store.path(self.experiment, self.fingerprint):
            return None
        return record if _compared(record.config) == _compared(redact(self.config)) else None


def _compared(config: Mapping[str, Any]) -> str:
    """Tells 5 from 5.0, which a fingerprint does not and validation may."""
    return json.dumps({k: v for k, v in config.items() if k not in _NOT_COMPARED}, sort_keys=True)


@dataclass(frozen=True)
class Obtained:
    """A finished run, and whether it was found."""

    record: RunRecord
    cached: bool


def train_job(cfg: DictConfig) -> Outcome:
    """Trains, or finds the finished run."""
    started = time.monotonic()
    asked = request(cfg)
    return outcome(asked, obtain(asked), time.monotonic() - started)


def obtain(asked: Request) -> Obtained:
    """The finished run with the verdicts asked for, told to the logger asked for."""
    record = asked.finished()
    parts = built(asked) if record is None else None
    keep_caches_in(asked.outputs)
    if record is not None:
        record = _with_verdicts(asked, record)
        if _is_told(asked, record):
            return Obtained(record, cached=True)
    from icl.training.job import TrainingPlan
    from icl.training.stored import run_plan

    plan = TrainingPlan(**(parts or built(asked)))
    result = run_plan(
        plan,
        force=asked.force,
        judge=lambda *trained: ask(asked.questions, *trained),
        follow=lambda attempt: _followers(asked, plan, attempt),
    )
    record = _with_verdicts(asked, result.record)
    _note_told(asked, record)
    return Obtained(record, result.cached)


@contextlib.contextmanager
def _followers(asked: Request, plan: TrainingPlan, attempt: int) -> Iterator[list[Follower]]:
    """W&B where it is asked for, and a bar on a terminal."""
    from icl.cli.training_bar import training_bar
    from icl.sinks.runs import ToSink
    from icl.sinks.sink import NullSink
    from icl.sinks.wandb_sink import UnfailingSink, open_sink

    opened = open_sink(
        asked.logger,
        outputs=asked.outputs,
        group=asked.group,
        job_type="train",
        run_id=f"{asked.fingerprint}-{attempt}",
        name=f"{asked.experiment} {asked.fingerprint}",
        config=dict(asked.config),
        tags=(asked.experiment.partition("/")[0], asked.scale),
    )
    steps, heatmaps, seeds = plan.train.steps, plan.callbacks.heatmap_count, asked.logger.heatmap_seeds
    with UnfailingSink(opened, asked.experiment) as sink, training_bar(asked.experiment, steps) as bar:
        logged = ToSink(sink, plan.law.arrays().get("Sigma"), plan.seeds, steps, heatmaps, seeds)
        yield [*bar, *([] if isinstance(sink, NullSink) else [logged])]


def training_plan(cfg: DictConfig) -> Request:
    """Everything validated, nothing written."""
    asked = request(cfg)
    if asked.finished() is None:
        built(asked)
    return asked


def request(cfg: DictConfig) -> Request:
    """What can be validated without torch; the rest by `built`."""
    outputs = common_settings(cfg, "train", OWN)
    config = plain(cfg)
    seeds = resolved_seeds(config["seeds"], config["seed"])
    config |= {"seeds": list(seeds), "seed": None}
    for key in (*SCIENCE, "trainer", "callbacks", "logger"):
        if not isinstance(config[key], dict):
            raise InputError(f"{key}={config[key]}: must be a group of settings")
    science = {key: by_content(config[key]) for key in SCIENCE}
    science["precision"] = config["trainer"].get("precision")
    names = config["checks"] or []
    for key in ("task", "model", "optimizer"):
        allowed_target(key, config[key].get("_target_"))
    roots = (*targets({key: config[key] for key in SCIENCE}), *TRAINING)
    about = targets(config["task"], config["model"])
    return Request(
        experiment=experiment_name(config["name"]),
        fingerprint=fingerprint(science | {"seeds": list(seeds)}),
        group=fingerprint(science),
        seeds=seeds,
        config={k: v for k, v in config.items() if k not in _NOT_STORED},
        logger=_settings(LoggerSettings, "logger", config["logger"]),
        outputs=outputs,
        digest=code_digest(roots),
        roots=roots,
        force=cfg.force,
        scale=str(cfg.scale),
        questions=questions([names] if isinstance(names, str) else names, cfg.scale, about),
    )


def built(asked: Request) -> dict[str, Any]:
    """The parts of a TrainingPlan, built and tried out against one another."""
    from icl.training.restored import law_and_model
    from icl.training.settings import CallbackSettings, TrainerSettings, TrainSettings

    config = asked.config
    law, model = law_and_model(config, asked.seeds)
    parts = {
        "law": law,
        "model": model,
        "optimizer": _optimizer(config["optimizer"]),
        "train": _settings(TrainSettings, "train", config["train"]),
        "trainer": _settings(TrainerSettings, "trainer", config["trainer"]),
        "callbacks": _settings(CallbackSettings, "callbacks", config["callbacks"]),
    }
    _try_out(asked, **parts)
    shared = ("experiment", "fingerprint", "group", "seeds", "outputs", "config", "digest", "roots")
    return parts | {name: getattr(asked, name) for name in shared}


def _optimizer(node: Mapping[str, Any]) -> Any:
    import torch

    from icl.training.optimizers import OptimizerSpec

    options = {k: v for k, v in node.items() if k not in ("_target_", "schedule")}
    cls = target_class("optimizer", node.get("_target_"))
    if not issubclass(cls, torch.optim.Optimizer):
        raise InputError(f"optimizer._target_={node['_target_']}: must be a torch.optim.Optimizer")
    schedule = instantiate("optimizer.schedule", node.get("schedule") or {})
    if not hasattr(schedule, "rate"):
        raise InputError(f"optimizer.schedule._target_={node['schedule']['_target_']}: must be a schedule")
    return OptimizerSpec(cls, options, schedule)


def _try_out(
    asked: Request, law: Any, model: Any, optimizer: Any, train: Any, trainer: Any, callbacks: Any
) -> None:
    """What only shows when parts meet: options per seed, estimator against model, clip against optimizer."""
    from icl.training.estimators import make_estimator

    replicas = len(asked.seeds)
    optimizer.per_replica(replicas)
    if train.clip_for(replicas) is not None and optimizer.couples_replicas:
        raise InputError("train.clip: must be null with L-BFGS, whose line search needs the true gradient")
    make_estimator(train.estimator, model, law)
    model.parametrization.initialise(asked.seeds)
    refuse_unanswerable(asked.questions, model, law)


def experiment_name(name: Any) -> str:
    """A relative folder name."""
    from icl.runs.layout import record_path

    try:
        record_path(Path(), "runs", str(name), "0" * 12)
    except InputError:
        raise InputError(f"name={name}: must be a relative name such as mylab/first") from None
    return str(name)


def _settings(cls: type, key: str, node: Mapping[str, Any]) -> Any:
    known = [f.name for f in fields(cls)]
    for name in node:
        if name not in known:
            raise InputError(f"{key}.{name}: no such key; must be one of {', '.join(known)}")
    try:
        return cls(**node)
    except TypeError as error:
        raise InputError(f"{key}: {error}") from None


def _with_verdicts(asked: Request, record: RunRecord) -> RunRecord:
    """Adds the verdicts a finished run was not asked for when it was made, or that other code gave."""
    from icl.runs import atomic
    from icl.runs.documents import write_json

    known = {verdict["question"] for verdict in record.verdicts}
    unanswered = [question for question in asked.questions if question.fingerprint not in known]
    if not unanswered:
        return record
    from icl.cli.weights import of_run

    new = ask(unanswered, of_run(record.path))
    names = {verdict["check"] for verdict in new}
    kept = [verdict for verdict in record.verdicts if verdict["check"] not in names]
    with atomic.writing(asked.outputs):
        write_json(record.path / "verdicts.json", {"verdicts": [*kept, *new]})
    return RunRecord(record.path, record.run)  # the old one has read its verdicts


def _is_told(asked: Request, record: RunRecord) -> bool:
    """Whether the logger asked for has this record. A server, of which that is not known, is told again."""
    if asked.logger.mode == "none":
        return True
    run_id = f"{asked.fingerprint}-{record.run['attempt']}"
    there = any((asked.outputs / "wandb").glob(f"offline-run-*-{run_id}"))
    return asked.logger.mode == "offline" and there and _note(asked, record).exists()


def _note_told(asked: Request, record: RunRecord) -> None:
    if asked.logger.mode == "offline":
        note = _note(asked, record)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def _note(asked: Request, record: RunRecord) -> Path:
    settings = {f.name: getattr(asked.logger, f.name) for f in fields(asked.logger)}
    verdicts = sorted(verdict["question"] for verdict in record.verdicts)
    what = {"logger": settings, "verdicts": verdicts, "heatmaps": asked.config["callbacks"]}
    return (
        asked.outputs / "cache" / "told" / f"{asked.fingerprint}-{record.run['attempt']}-{fingerprint(what)}"
    )


def outcome(asked: Request, obtained: Obtained, seconds: float) -> Outcome:
    record, run, cached = obtained.record, obtained.record.run, obtained.cached
    wanted = {question.fingerprint for question in asked.questions}
    verdicts = [verdict for verdict in record.verdicts if verdict["question"] in wanted]
    document = {
        "run_dir": record.path,
        "fingerprint": run["fingerprint"],
        "status": run["status"],
        "cached": cached,
        "resumed": run["resumed"] > 0,
        "steps": run["steps"],
        "seconds": seconds if cached else run["seconds"],
        "metrics": run["metrics"],
        "verdicts": verdicts,
    }
    code = worst([OK, *(verdict_code(v["verdict"], v["expected"]) for v in verdicts)])
    return Outcome(document, code, lambda: show(document, record))


def show(document: Mapping[str, Any], record: RunRecord) -> None:
    """The run as a person wants to see it: numbers by seed, then verdicts, then where things are."""
    from rich.console import Console
    from rich.measure import Measurement

    from icl.cli.show import coloured

    console = Console()
    how = "found" if document["cached"] else "resumed and done" if document["resumed"] else "done"
    console.print(
        f"[bold]{record.run['experiment']}[/] {how}: {document['steps']} steps, {document['seconds']:.1f} s"
    )
    metrics = {k: v for k, v in document["metrics"].items() if not _OF_ONE_MATRIX.search(k)}
    seeds = record.run["seeds"]
    table = _table(metrics, [f"seed {seed}" for seed in seeds], lambda cells: cells)
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum > console.width:
        table = _table(metrics, ["lowest", "highest"], _extremes)
        console.print(f"over {len(seeds)} seeds; each of them is in metrics.csv", highlight=False)
    console.print(table)
    for verdict in document["verdicts"]:
        console.print(f"{verdict['check']} at these weights: {coloured(verdict)}")
    console.print(f"run: {document['run_dir']}", soft_wrap=True, markup=False, highlight=False)


def _table(
    metrics: Mapping[str, Any], columns: Sequence[str], shown: Callable[[list[Cell]], list[Cell]]
) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("metric", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ["mean", *columns]:
        table.add_column(name, no_wrap=True, justify="right")
    for name, entry in metrics.items():
        if name in map(error_of, metrics):
            continue  # stands behind its own metric
        values, errors = list(entry["by_seed"].values()), _errors(metrics, name)
        cells = list(zip(values, errors or [None] * len(values), strict=True))
        table.add_row(name, kind_of(name, errors), mean_cell(metrics, name), *map(_cell, shown(cells)))
    return table


def mean_cell(metrics: Mapping[str, Any], name: str) -> str:
    """The mean over seeds with its standard error, if it was sampled: seeds are, apart from one another."""
    errors = _errors(metrics, name)
    known = [error for error in errors if error is not None]
    error = math.hypot(*known) / len(known) if known and len(known) == len(errors) else None
    return _cell((metrics.get(name, {}).get("mean"), error))


def _errors(metrics: Mapping[str, Any], name: str) -> list[float | None]:
    return list(metrics.get(error_of(name), {"by_seed": {}})["by_seed"].values())


def _extremes(cells: list[Cell]) -> list[Cell]:
    defined = [value for value, _ in cells if value is not None]
    return [(min(defined, default=None), None), (max(defined, default=None), None)]


def _cell(cell: Cell) -> str:
    value, error = cell
    return (
        f"{number(value)} \N{PLUS-MINUS SIGN} {error:.2g}" if value is not None and error else number(value)
    )


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
