"""A training run: a request becomes a plan, the plan a run.

A request is known without torch: the identity of the run and the place of its record. A finished record
of this very config answers it at once; otherwise the parts are built, which validates them, and only then is
Lightning imported.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed
from icl.config.objects import target_of
from icl.config.search_path import TORCHRUN
from icl.config.session import Session
from icl.config.train_config import TrainConfig
from icl.config.values import by_content, processes, resolve_seeds
from icl.errors import InputError
from icl.events import ItemProgress, WorkItem
from icl.jobs.requests.given_weights import of_model
from icl.jobs.requests.pending import FINALIZE, PENDING, PendingStep
from icl.jobs.requests.request import Document, Found, run_request, state_smoke
from icl.jobs.requests.run_logs import RunLogs
from icl.jobs.requests.weight_checks import WeightCheck, evaluate, validate_weight_checks, weight_checks_of
from icl.redact import holds_secret, redact
from icl.runs import layout
from icl.runs.code import TRAINING, code_digest, targets
from icl.runs.documents import read_record, same
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord, complaint, find_done
from icl.runs.store import RunStore

if TYPE_CHECKING:
    from icl.models import Transformer
    from icl.tasks.law import Law
    from icl.training.build import RunParts
    from icl.training.plan import RunPart, TrainingPlan, TrainResult

SCIENCE = ("task", "model", "optimizer", "train")
# Settings younger than the first records, at values that change nothing: there a run keeps its fingerprint.
LATER = {"tasks": None, "task_law": "gaussian", "task_draw": "drawn"}
_OF_SWEEPS = ("optimized_metric", "best_by", "search", "cluster", "sweep")
PROCESSES = 128  # up to this number, a run begun by another number of processes is looked up
OWN = (*SCIENCE, "trainer", "callbacks", "checkpoint", "name", "seeds", "seed", "checks", *_OF_SWEEPS)
_NOT_STORED = ("format", "force", "verbose", "paths", *_OF_SWEEPS)
_PASSIVE_CALLBACKS = tuple(
    f"icl.callbacks.{name}" for name in ("WeightHeatmaps", "Profile", "Progress", "Checkpoints")
)
# callbacks that change the weights: part of what a run is
_TRAINING_CALLBACKS = ("icl.callbacks.Curriculum", "icl.callbacks.Growth")
_NOT_COMPARED = ("logger", "checks", "checkpoint")  # validated in the request itself


@dataclass(frozen=True)
class TrainRequest:
    """A training run that is wanted: `lookup` finds it, `execute` makes it, and the steps in PENDING are what
    may be left to do for a finished one."""

    kind: ClassVar[str] = "train"
    id: str  # the experiment
    identity: str
    group: str
    config: TrainConfig
    digest: str
    roots: tuple[str, ...]
    scale: str
    processes: int
    science: Mapping[str, Any] = field(repr=False)
    weight_checks: tuple[WeightCheck, ...]
    note: str = ""  # what was left out of the experiment, in a line
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)  # for run.json: who asked for it

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.config.seeds

    @property
    def logs(self) -> RunLogs:
        overrides = self.origin.get("overrides", ())
        return RunLogs(self.id, self.identity, self.group, self.scale, self.config, overrides)

    def lookup(self, session: Session) -> Found | None:
        record = self._stored(session)
        if record is None:
            if not session.force:
                self._refuse_other_processes(session)
            return None
        stale = complaint(record.path, record.run, self.digest) or ""
        left = next((reason for step in PENDING if (reason := step.reason(self, record, session))), "")
        return Found(self._document(record, cached=True), record.path, record.run, stale, left)

    def execute(self, session: Session) -> Document:
        started = time.monotonic()
        record = self._reusable(session)
        if record is not None:
            result = self._finish(record, PENDING, session)
            return self._document(result, cached=True, seconds=time.monotonic() - started)
        from icl.training.run import train_runs

        state_smoke(self.scale, session)
        (outcome,) = train_runs([self.part(session)], force=session.force)
        if isinstance(outcome, Exception):
            raise outcome
        return self.document_of(outcome, session, started)

    def document_of(self, result: TrainResult, session: Session, started: float | None = None) -> Document:
        """Return the document of a run that was just trained, or found when it was its turn."""
        if result.cached and (late := self._ineffective_callbacks(result.record)):
            names = ", ".join(f"callbacks.{name}" for name in late)
            session.info(
                f"icl: {self.id}: was trained before, so {names} had no effect (force=true trains again)"
            )
        record = self._finish(result.record, PENDING if result.cached else FINALIZE, session)
        seconds = 0.0 if started is None else time.monotonic() - started
        return self._document(record, cached=result.cached, seconds=seconds)

    def _finish(self, record: RunRecord, steps: Sequence[PendingStep], session: Session) -> RunRecord:
        for step in steps:
            if step.reason(self, record, session):
                record = step.run(self, record, session)
        return record

    def run(self, session: Session) -> RunRecord:
        """Return the finished run, with its verdicts, logged."""
        document = run_request(self, session)
        if document["status"] == "failed":
            raise RuntimeError(f"{self.id}: {document['error']}")
        record = find_done(Path(document["run_dir"]), self.digest)
        if record is None:
            place = document["run_dir"]
            raise RuntimeError(f"{place}: is no longer what this code made; the same command starts over")
        return record

    @property
    def is_one_of_several_ranks(self) -> bool:
        """Return whether this process is one of several that were started to make it."""
        if self.processes == 1 and TORCHRUN not in os.environ:
            return False
        from icl.training.launch import launched_externally

        return launched_externally(self.processes, self.config.trainer["num_nodes"])

    def run_on_ranks(self, session: Session) -> Document:
        """Return the document on rank 0 and {} on the others."""
        from icl.training.launch import initialized_group, run_worker, worker_plan

        self.validate()
        with initialized_group() as process_group:
            if process_group.is_rank_zero:
                return run_request(self, session, in_group=True)
            run_worker(process_group, worker_plan(self.config, session.outputs))
        return {}

    def validate(self) -> None:
        self.parts  # noqa: B018
        for name, node in self.config.lightning_loggers.items():
            from icl.loggers.lightning import build_logger

            build_logger(f"logger.{name}", node, self.id, self.identity)

    def needs_training(self, session: Session) -> bool:
        return self._reusable(session) is None

    def part(self, session: Session) -> RunPart:
        """Return the run for `train_runs`, which reports progress and logs while it trains."""
        from icl.callbacks import Progress
        from icl.training.plan import RunPart

        plan = self.plan(session)
        item, seeds = WorkItem("train", self.id), plan.seeds
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        for callback in plan.callbacks:
            if isinstance(callback, Progress):
                callback.report = lambda done, text: session.on_event(
                    ItemProgress(item, done, f"{which}, {text}")
                )
        observe = functools.partial(self.logs.observers, plan, session)
        return RunPart(plan, self.judge, observe, session.info)

    def plan(self, session: Session) -> TrainingPlan:
        from icl.training.plan import TrainingPlan

        return TrainingPlan(
            experiment=self.id,
            fingerprint=self.identity,
            group=self.group,
            seeds=self.seeds,
            outputs=session.outputs,
            config=self.config.stored,
            digest=self.digest,
            roots=self.roots,
            origin=self.origin,
            **vars(self.parts),
        )

    def judge(self, model: Transformer, law: Law) -> Sequence[Mapping[str, Any]]:
        return evaluate(self.weight_checks, of_model(model, law)) if self.weight_checks else []

    @functools.cached_property
    def parts(self) -> RunParts:
        """The parts of a TrainingPlan, built and tried out against one another."""
        from icl.training.load import law_and_model

        built = law_and_model(self.config.task, self.config.model, self.seeds)
        from icl.training.build import build_parts  # Lightning: ten seconds on a cold machine

        parts = build_parts(self.config, built)
        self._try_out(parts)
        return parts

    def _try_out(self, parts: RunParts) -> None:
        """Validate combinations: options per seed, estimator and model, clip and optimizer."""
        from icl.callbacks import Curriculum, Growth
        from icl.training.estimators import make_estimator

        law, model, optimizer, train = parts.law, parts.model, parts.optimizer, parts.train
        replicas = len(self.seeds)
        optimizer.validate_accelerator(parts.trainer.chosen_accelerator)
        optimizer.per_replica(replicas)
        if train.clip_for(replicas) is not None and optimizer.needs_per_replica_step:
            raise InputError(
                "train.clip: must be null with L-BFGS, whose line search needs the true gradient"
            )
        train.validate_memory(model, replicas, parts.trainer)
        estimator = make_estimator(train.estimator, model, law)
        train.validate_for_processes(estimator.reliability_names, self.processes)
        if self.processes > 1 and optimizer.needs_per_replica_step:
            raise InputError("optimizer: L-BFGS searches along one process's loss; set trainer.devices=1")
        train.maps(model, law)
        for callback in parts.callbacks:
            if isinstance(callback, Curriculum):
                callback.validate_law(law)
            if isinstance(callback, Growth):
                callback.validate_run(model.parametrization, train, optimizer, replicas)
        model.parametrization.initialise(self.seeds)
        validate_weight_checks(self.weight_checks, model, law)

    def _stored(self, session: Session) -> RunRecord | None:
        """Return the finished record of this very config, made by whatever code."""
        folder = RunStore(session.outputs).path(self.id, self.identity)
        record = find_done(folder, None)
        if record is None or record.path != folder:
            return None
        stored, wanted = _compared(record.config), _compared(self.config.stored)
        return record if same(stored, wanted) or same(stored, redact(wanted)) else None

    def _reusable(self, session: Session) -> RunRecord | None:
        """Return the stored record if it need not be trained again."""
        record = None if session.force else self._stored(session)
        return None if record is None or complaint(record.path, record.run, self.digest) else record

    def _ineffective_callbacks(self, record: RunRecord) -> list[str]:
        """Return callbacks that would have done something while a finished run was made."""
        then = record.config["callbacks"]
        return [
            name
            for name, node in self.config.callbacks.items()
            if then.get(name) != node and node["_target_"] not in _PASSIVE_CALLBACKS
        ]

    def _refuse_other_processes(self, session: Session) -> None:
        """Refuse a run that exists, interrupted, for another number of processes: its prompts differ."""
        own = RunStore(session.outputs).path(self.id, self.identity)
        there = _names_in(own.parent, session)
        if own.name in there:
            return
        alone = _identity(self.science, self.seeds, 1)
        for count in range(1, PROCESSES + 1):
            name = _of_processes(alone, count)
            run = read_record(own.parent / name / "run.json") if name in there else None
            if run is not None and run.get("status") in ("running", "interrupted"):
                raise InputError(
                    f"trainer.devices, trainer.num_nodes: {own.parent / name} was started with {count} "
                    f"processes and can only be resumed with {count} (prompts depend on the number, here "
                    f"{self.processes}); force=true starts over"
                )

    def _document(self, record: RunRecord, *, cached: bool, seconds: float = 0.0) -> Document:
        run = record.run
        wanted = {check.fingerprint for check in self.weight_checks}
        error = run["notes"][-1] if run.get("diverged") else None
        return {
            "run_dir": str(record.path),
            "fingerprint": run["fingerprint"],
            "status": "failed" if error else run["status"],
            "error": error,
            "warnings": run.get("warnings", []),
            "cached": cached,
            "resumed": run["resumed"] > 0,
            "steps": run["steps"],
            "seconds": seconds if cached else run["seconds"],
            "metrics": run["metrics"],
            "checkpoint": str(record.path / layout.LIGHTNING) if self.config.checkpoint else None,
            "verdicts": [verdict for verdict in record.verdicts if verdict["question"] in wanted],
        }


def parse(composed: Composed, session: Session) -> TrainRequest:
    """Parse what can be validated without torch; `TrainRequest.parts` validates the rest."""
    config = dict(composed.settings)
    seeds = resolve_seeds(config["seeds"], config["seed"])
    config |= {"seeds": list(seeds), "seed": None, "logger": asdict(session.logger)}
    for key in (*SCIENCE, "trainer", "callbacks"):
        if not isinstance(config[key], dict):
            raise InputError(f"{key}={config[key]}: must be a group of settings")
    if not isinstance(config["optimized_metric"], str | None):
        raise InputError(f"optimized_metric={config['optimized_metric']}: must be the name of a metric")
    if not isinstance(config["checkpoint"], bool):
        raise InputError(f"checkpoint={config['checkpoint']}: must be true or false")
    for key in ("task", "model", "optimizer"):
        target_of(key, config[key])
    names, scale = config["checks"] or [], str(config["scale"])
    about = targets(config["task"], config["model"])
    checks = weight_checks_of([names] if isinstance(names, str) else names, scale, about, session)
    fitting, instead = _fitting(checks, composed.may_not_fit, config, seeds, session)
    config["train"] = {**config["train"], **instead}
    science = {key: _without_later(by_content(config[key])) for key in SCIENCE}
    science["precision"] = config["trainer"].get("precision")
    if (products := config["trainer"].get("matmul_precision", "highest")) != "highest":
        science["matmul_precision"] = products
    count = processes(config["trainer"].get("devices", 1), config["trainer"].get("num_nodes", 1))
    science |= {"callbacks": shaping} if (shaping := _training_callbacks(config["callbacks"])) else {}
    roots = (*targets({**{key: config[key] for key in SCIENCE}, "callbacks": shaping}), *TRAINING)
    return TrainRequest(
        id=_experiment_name(config["name"]),
        identity=_identity(science, seeds, count),
        group=_identity(science, None, count),
        config=TrainConfig.of({k: v for k, v in config.items() if k not in _NOT_STORED}),
        digest=code_digest(roots),
        roots=roots,
        scale=scale,
        processes=count,
        science=science,
        weight_checks=fitting,
        note=_note(composed.left_out, [one.check for one in checks if one not in fitting], instead),
        origin=_origin(composed, session),
    )


def _origin(composed: Composed, session: Session) -> dict[str, Any]:
    """Return what was typed, the option of each group, and the figure that asks."""
    choices = {
        group: option
        for group, option in composed.choices.items()
        if option is not None and group.partition("/")[0] != "hydra"
    }
    return {"overrides": list(composed.overrides), "choices": choices, "figure": session.figure}


def _fitting(
    checks: tuple[WeightCheck, ...],
    keys: Sequence[str],
    config: Mapping[str, Any],
    seeds: Sequence[int],
    session: Session,
) -> tuple[tuple[WeightCheck, ...], dict[str, Any]]:
    """Return the checks that can judge such weights, and settings of `train` that replace unusable ones.

    `keys` were set for another task or model.
    """
    if not keys:
        return checks, {}
    train = config["train"]
    about = [keys, config["task"], config["model"], train, [one.fingerprint for one in checks]]
    key = (_fitting, json.dumps(about, sort_keys=True, default=str))
    if key not in session.cache:
        from icl.training.estimators import make_estimator
        from icl.training.load import law_and_model

        law, model = law_and_model(config["task"], config["model"], seeds)
        model.parametrization.initialise(seeds)
        kept = tuple(one for one in checks if "checks" not in keys or _can_judge(one, model, law))
        instead: dict[str, Any] = {}
        if "train.estimator" in keys:
            try:
                make_estimator(train["estimator"], model, law)
            except InputError:
                instead["estimator"] = next(iter(law.estimators(model)))
                if train["batch"] is None and "train.batch" in keys:
                    instead["batch"] = session.compose("train", []).settings["train"]["batch"]
        may_be_whitened = set(model.parametrization.shapes()) <= set(law.coordinates(model))
        if "train.coordinates" in keys and train["coordinates"] != "plain" and not may_be_whitened:
            instead["coordinates"] = "plain"
        session.cache[key] = kept, instead
    found: tuple[tuple[WeightCheck, ...], dict[str, Any]] = session.cache[key]
    return found


def _can_judge(question: WeightCheck, model: Any, law: Any) -> bool:
    try:
        validate_weight_checks([question], model, law)
    except InputError:
        return False
    return True


def _note(settings: Sequence[str], checks: Sequence[str], instead: Mapping[str, Any]) -> str:
    """Return the line that names what the chosen options leave out of the experiment."""
    left_out = [*settings, *(f"train.{name}" for name in instead)]
    parts = [", ".join(left_out)] if left_out else []
    parts += [f"checks {', '.join(checks)}"] if checks else []
    new = ", ".join(f"train.{name}={value}" for name, value in instead.items())
    parts += [f"with {new}"] if new else []
    why = "left out, since other options are chosen than the experiment's"
    return f"{why}: {'; '.join(parts)}" if parts else ""


def _names_in(folder: Path, session: Session) -> set[str]:
    """List a folder once for all jobs of a sweep, whose runs share it."""
    key = (_names_in, folder)
    if key not in session.cache:
        try:
            session.cache[key] = set(os.listdir(folder))
        except OSError:
            session.cache[key] = set()
    found: set[str] = session.cache[key]
    return found


def _training_callbacks(callbacks: Mapping[str, Any]) -> dict[str, Any]:
    nodes = {name: node for name, node in callbacks.items() if isinstance(node, dict)}
    return {name: node for name, node in nodes.items() if node.get("_target_") in _TRAINING_CALLBACKS}


def _identity(science: Mapping[str, Any], seeds: Sequence[int] | None, processes: int) -> str:
    """Return the fingerprint of a run, or of all runs that differ in seeds only."""
    about = dict(science) if seeds is None else {**science, "seeds": list(seeds)}
    return _of_processes(fingerprint(about), processes)


def _of_processes(alone: str, processes: int) -> str:
    return alone if processes == 1 else fingerprint({"alone": alone, "processes": processes})


def _experiment_name(name: Any) -> str:
    """Return the name of an experiment, which must be a relative folder name."""
    from icl.runs.layout import record_path

    try:
        record_path(Path(), "runs", str(name), "0" * 12)
    except InputError:
        raise InputError(f"name={str(name)[:80]}: must be a relative name such as mylab/first") from None
    if holds_secret(str(name)):
        raise InputError("name: holds what looks like a password or a key; runs are filed under it")
    return str(name)


def _without_later(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in LATER or value != LATER[key]}


def _compared(config: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _without_later(v) if k in SCIENCE else v for k, v in config.items() if k not in _NOT_COMPARED}
