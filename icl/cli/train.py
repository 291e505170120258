"""`icl train`: a config becomes a plan, the plan a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from icl.cli.outcome import OK, Outcome, verdict_code, worst
from icl.config import SCALES, instantiate, outputs_folder, plain, resolved_seeds, target_class
from icl.errors import InputError, one_of
from icl.runs.fingerprint import code_digest, fingerprint
from icl.runs.record import RunRecord

SCIENCE = ("task", "model", "optimizer", "train")


def train_job(cfg: DictConfig) -> Outcome:
    """Trains, or finds the finished run."""
    from icl.training.job import run_plan

    started = time.monotonic()
    plan = training_plan(cfg)
    judge = judge_for(cfg)
    result = run_plan(plan, force=bool(cfg.force), judge=judge)
    return outcome(result.record, cached=result.cached, seconds=time.monotonic() - started)


def training_plan(cfg: DictConfig) -> Any:
    """Everything validated, nothing written."""
    from icl.models import LinearTransformer
    from icl.tasks import LinearRegression
    from icl.training.job import DIGESTED, TrainingPlan
    from icl.training.optimizers import OptimizerSpec
    from icl.training.settings import CallbackSettings, TrainerSettings, TrainSettings

    one_of("scale", cfg.scale, SCALES)
    one_of("format", cfg.format, ("text", "json"))
    config = plain(cfg)
    seeds = resolved_seeds(config["seeds"], config["seed"])
    config |= {"seeds": list(seeds), "seed": None}
    task = instantiate("task", config["task"])
    if not isinstance(task, LinearRegression):
        raise InputError(f"task._target_={config['task']['_target_']}: icl train needs a linear-regression task")
    model_node = {k: v for k, v in config["model"].items() if k not in ("path", "activation")}
    family = instantiate("model", model_node, dim=task.dim)
    model = LinearTransformer(family, config["model"].get("path", "gram"), config["model"].get("activation", "identity"))
    optimizer_node = dict(config["optimizer"])
    schedule = instantiate("schedule", optimizer_node.pop("schedule"))
    optimizer = OptimizerSpec(
        target_class("optimizer", optimizer_node.pop("_target_")), _tidy(optimizer_node), schedule
    )
    train = _settings(TrainSettings, "train", config["train"])
    trainer = _settings(TrainerSettings, "trainer", config["trainer"])
    science = {key: _with_file_contents(config[key]) for key in SCIENCE} | {"precision": trainer.precision}
    plan = TrainingPlan(
        experiment=experiment_name(config["name"]),
        fingerprint=fingerprint(science | {"seeds": list(seeds)}),
        group=fingerprint(science),
        seeds=seeds,
        law=task.law(seeds),
        model=model,
        optimizer=optimizer,
        train=train,
        trainer=trainer,
        callbacks=_settings(CallbackSettings, "callbacks", config["callbacks"]),
        logger=_logger(config["logger"]),
        outputs=outputs_folder(cfg),
        config={k: v for k, v in config.items() if k not in ("format", "force", "verbose", "paths")},
        digest=code_digest(DIGESTED),
    )
    _try_out(plan)
    return plan


def _try_out(plan: Any) -> None:
    """What only shows when parts meet: options per seed, estimator against model, clip against optimizer."""
    from icl.training.estimators import make_estimator

    replicas = len(plan.seeds)
    plan.optimizer.per_replica(replicas)
    clip = plan.train.clip_for(replicas)
    if plan.optimizer.couples_replicas and clip is not None:
        raise InputError("train.clip: must be null with L-BFGS, whose line search needs the true gradient")
    make_estimator(plan.train.estimator, plan.model, plan.law)
    if plan.model.path == "tokens" and len(set(plan.law.context_R)) > 1:
        raise InputError("task.context: one length for all seeds where model.path=tokens")
    plan.model.parametrization.initialise(plan.seeds)


def experiment_name(name: Any) -> str:
    """A relative folder name."""
    parts = Path(str(name)).parts
    if not parts or Path(str(name)).is_absolute() or any(part in ("..", ".") for part in parts):
        raise InputError(f"name={name}: must be a relative name such as mylab/first")
    return "/".join(parts)


def _settings(cls: type, key: str, node: Mapping[str, Any]) -> Any:
    known = [f.name for f in fields(cls)]
    for name in node:
        if name not in known:
            raise InputError(f"{key}.{name}: no such key; must be one of {', '.join(known)}")
    return cls(**node)


def _logger(node: Mapping[str, Any]) -> Any:
    from icl.training.wandb_sink import LoggerSettings

    return _settings(LoggerSettings, "logger", node)


def _tidy(options: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if v is not None or k in ("foreach", "line_search_fn", "max_eval")}


def _with_file_contents(node: Any) -> Any:
    """A matrix given as a .npy file counts by its content, not by its path."""
    if isinstance(node, Mapping):
        return {k: _with_file_contents(v) for k, v in node.items()}
    if isinstance(node, str) and node.endswith(".npy") and Path(node).is_file():
        import hashlib

        return hashlib.sha256(Path(node).read_bytes()).hexdigest()
    return node


def judge_for(cfg: DictConfig) -> Any:
    """Asks the checks the config names of the trained weights; None where it names none."""
    from icl.cli.check import judge_of

    names = plain(cfg.check)
    names = [names] if isinstance(names, str) else names or []
    return judge_of([str(name) for name in names], cfg)


def outcome(record: RunRecord, *, cached: bool, seconds: float) -> Outcome:
    verdicts = record.verdicts
    document = {
        "run_dir": record.path,
        "fingerprint": record.run["fingerprint"],
        "status": record.run["status"],
        "cached": cached,
        "resumed": record.run["resumed"] > 0,
        "steps": record.run["steps"],
        "seconds": record.run["seconds"] if not cached else seconds,
        "metrics": record.run["metrics"],
        "verdicts": verdicts,
    }
    code = worst([OK, *(verdict_code(v["verdict"], v["expected"]) for v in verdicts)])
    return Outcome(document, code, lambda: show(document, record))


def show(document: Mapping[str, Any], record: RunRecord) -> None:
    """The run as a person wants to see it: numbers by seed, then where things are."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    how = "found" if document["cached"] else "resumed and done" if document["resumed"] else "done"
    experiment = record.run["experiment"]
    console.print(f"[bold]{experiment}[/bold] {how}: {document['steps']} steps, {document['seconds']:.1f} s")
    table = Table("metric", "mean", *(f"seed {seed}" for seed in record.run["seeds"]))
    for name, entry in document["metrics"].items():
        if "_A" in name or "_B" in name or "_P" in name or "_Q" in name:
            continue
        table.add_row(name, number(entry["mean"]), *(number(value) for value in entry["by_seed"].values()))
    console.print(table)
    for verdict in document["verdicts"]:
        console.print(f"  {verdict['check']}: {verdict['verdict']} (expected {verdict['expected']})")
    console.print(f"run: {document['run_dir']}", soft_wrap=True)
    if sys.stdout.isatty():
        console.print("weights: icl.load_run(run).A    curves: metrics.csv    W&B: wandb sync or wandb leet", style="dim")


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
