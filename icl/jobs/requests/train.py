"""A training run: a request becomes a plan, the plan a run.

A request is what can be known without torch: who the run is and where its record would be. A finished record
of this very config answers it at once; otherwise the parts are built, which validates them, and only then is
Lightning imported.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed
from icl.config.logger import under_agent
from icl.config.objects import target_of
from icl.config.search_path import TORCHRUN
from icl.config.session import Session
from icl.config.values import by_content, processes, resolved_seeds
from icl.errors import InputError
from icl.events import Item
from icl.events import Progress as Progressed
from icl.jobs.requests.given_weights import of_model, of_run
from icl.jobs.requests.request import Document, Found, run_local, run_request
from icl.jobs.requests.weight_checks import WeightCheck, evaluate, validate_weight_checks, weight_checks_of
from icl.runs import atomic, layout
from icl.runs.code import TRAINING, code_digest, targets
from icl.runs.documents import read_json, same, write_record
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord, complaint, find_done, load_run
from icl.runs.redact import redact
from icl.runs.store import RunStore
from icl.sinks.logged_once import LoggedOnce

if TYPE_CHECKING:
    from icl.models import Transformer
    from icl.sinks.safe import SafeSink
    from icl.tasks.law import Law
    from icl.training.plan import RunObserver, RunPart, TrainingPlan, TrainResult

SCIENCE = ("task", "model", "optimizer", "train")
_OF_SWEEPS = ("optimized_metric", "search", "cluster")
PROCESSES = 128  # that a run begun by some other number of processes is looked for
OWN = (*SCIENCE, "trainer", "callbacks", "checkpoint", "name", "seeds", "seed", "checks", *_OF_SWEEPS)
_NOT_STORED = ("format", "force", "verbose", "paths", *_OF_SWEEPS)
_PASSIVE_CALLBACKS = tuple(f"icl.callbacks.{name}" for name in ("WeightHeatmaps", "Progress", "Checkpoints"))
_TRAINING_CALLBACKS = (
    "icl.callbacks.Curriculum",
)  # callbacks that change the weights: part of what a run is
_NOT_COMPARED = ("logger", "checks", "checkpoint")  # validated in the request itself


@dataclass(frozen=True)
class TrainRequest:
    """One run as asked for."""

    kind: ClassVar[str] = "train"
    id: str  # the experiment
    identity: str
    group: str
    seeds: tuple[int, ...]
    config: Mapping[str, Any] = field(repr=False)
    digest: str
    roots: tuple[str, ...]
    scale: str
    processes: int
    science: Mapping[str, Any] = field(repr=False)
    weight_checks: tuple[WeightCheck, ...]
    note: str = ""  # what was left out of the experiment, in a line

    def lookup(self, session: Session) -> Found | None:
        record = self._stored(session)
        if record is None:
            if not session.force:
                self._refuse_other_processes(session)
            return None
        stale = complaint(record.path, record.run, self.digest) or ""
        unasked = [question.check for question in self._missing_verdicts(record)]
        left = f"not asked yet: {', '.join(unasked)}" if unasked else ""
        left = left or ("" if self._is_exported(record) else f"{layout.LIGHTNING} is not written yet")
        left = left or ("" if self._note(record, session).is_there else "W&B is to be told")
        return Found(self._document(record, cached=True), record.path, record.run, stale, left)

    @property
    def is_one_of_several_ranks(self) -> bool:
        """Return whether this process is one of several that were started to make it."""
        if self.processes == 1 and TORCHRUN not in os.environ:
            return False
        from icl.training.launch import launched_externally

        return launched_externally(self.processes, self.config["trainer"]["num_nodes"])

    def run_on_ranks(self, session: Session) -> Document:
        """Return the document on rank 0 and {} on the others."""
        from icl.training.launch import initialized_group, other_plan, run_worker

        self.validate()
        with initialized_group() as process_group:
            if process_group.is_rank_zero:
                return run_local(self, session)
            run_worker(process_group, other_plan(self.config, self.seeds, session.outputs))
        return {}

    def _refuse_other_processes(self, session: Session) -> None:
        """Refuse a run that exists, interrupted, for another number of processes: its prompts differ."""
        own = RunStore(session.outputs).path(self.id, self.identity)
        there = _names_in(own.parent, session)
        if own.name in there:
            return
        alone = _identity(self.science, self.seeds, 1)
        for count in range(1, PROCESSES + 1):
            name = _of_processes(alone, count)
            run = read_json(own.parent / name / "run.json") if name in there else None
            if run is not None and run.get("status") in ("running", "interrupted"):
                raise InputError(
                    f"trainer.devices, trainer.num_nodes: {own.parent / name} was started with {count} "
                    f"processes and can only be resumed with {count} (prompts depend on the number, here "
                    f"{self.processes}); force=true starts over"
                )

    def validate(self) -> None:
        self.parts  # noqa: B018
        for name, node in self.config["logger"]["lightning"].items():
            from icl.sinks.lightning import built

            built(f"logger.{name}", node, self.id, self.identity)

    def execute(self, session: Session) -> Document:
        started = time.monotonic()
        record, cached = self._load_or_train(session)
        return self._document(record, cached=cached, seconds=time.monotonic() - started)

    def run(self, session: Session) -> RunRecord:
        """The finished run with the verdicts asked for, told to the logger asked for."""
        document = run_request(self, session)
        if document["status"] == "failed":
            raise RuntimeError(f"{self.id}: {document['error']}")
        return load_run(document["run_dir"])

    def _load_or_train(self, session: Session) -> tuple[RunRecord, bool]:
        record = None if session.force else self._stored(session)
        if record is not None and complaint(record.path, record.run, self.digest) is None:
            record = self._finalize(record, session)
            if self._note(record, session).is_there:
                return record, True
        from icl.training.run import train_runs

        (outcome,) = train_runs([self.part(session)], force=session.force)
        if isinstance(outcome, Exception):
            raise outcome
        return self._run_pending(outcome, session), outcome.cached

    def needs_training(self, session: Session) -> bool:
        record = None if session.force else self._stored(session)
        return record is None or complaint(record.path, record.run, self.digest) is not None

    def plan(self, session: Session) -> TrainingPlan:
        from icl.training.plan import TrainingPlan

        return TrainingPlan(
            experiment=self.id,
            fingerprint=self.identity,
            group=self.group,
            seeds=self.seeds,
            outputs=session.outputs,
            config=self.config,
            digest=self.digest,
            roots=self.roots,
            **self.parts,
        )

    def part(self, session: Session) -> RunPart:
        from icl.training.plan import RunPart

        plan = self.plan(session)
        return RunPart(plan, self.judge, lambda attempt: self.observers(plan, session, attempt), session.info)

    def judge(self, model: Transformer, law: Law) -> Sequence[Mapping[str, Any]]:
        return evaluate(self.weight_checks, of_model(model, law)) if self.weight_checks else []

    def trained(self, result: TrainResult, session: Session) -> Document:
        """The document of a run that was just trained, or found when it was its turn."""
        record = self._run_pending(result, session)
        return self._document(record, cached=result.cached)

    def _run_pending(self, result: TrainResult, session: Session) -> RunRecord:
        if result.cached and (late := self._ineffective_callbacks(result.record)):
            names = ", ".join(f"callbacks.{name}" for name in late)
            session.info(
                f"icl: {self.id}: was trained before; {names} saw nothing of it (force=true repeats)"
            )
        return self._finalize(result.record, session)

    def _ineffective_callbacks(self, record: RunRecord) -> list[str]:
        """Callbacks that would have done something while a finished run was made."""
        then = record.config["callbacks"]
        now = {name: node for name, node in self.config["callbacks"].items() if node is not None}
        return [
            name
            for name, node in now.items()
            if then.get(name) != node and node["_target_"] not in _PASSIVE_CALLBACKS
        ]

    def _stored(self, session: Session) -> RunRecord | None:
        """The finished record of this very config, made by whatever code."""
        folder = RunStore(session.outputs).path(self.id, self.identity)
        record = find_done(folder, None)
        if record is None or record.path != folder:
            return None
        told, asked = _compared(record.config), _compared(self.config)
        return record if same(told, asked) or same(told, redact(asked)) else None

    @functools.cached_property
    def parts(self) -> dict[str, Any]:
        """The parts of a TrainingPlan, built and tried out against one another."""
        from icl.training.build import build_parts

        parts = build_parts(self.config, self.seeds)
        self._try_out(**parts)
        return parts

    def _try_out(
        self, law: Any, model: Any, optimizer: Any, train: Any, trainer: Any, callbacks: Any
    ) -> None:
        """Validate combinations: options per seed, estimator and model, clip and optimizer."""
        from icl.callbacks import Curriculum
        from icl.training.estimators import make_estimator

        replicas = len(self.seeds)
        optimizer.per_replica(replicas)
        if train.clip_for(replicas) is not None and optimizer.needs_per_replica_step:
            raise InputError(
                "train.clip: must be null with L-BFGS, whose line search needs the true gradient"
            )
        train.validate_memory(model, replicas)
        estimator = make_estimator(train.estimator, model, law)
        train.validate_for_processes(estimator.reliability_names, self.processes)
        if self.processes > 1 and optimizer.needs_per_replica_step:
            raise InputError("optimizer: L-BFGS searches along one process's loss; set trainer.devices=1")
        train.maps(model, law)
        for callback in callbacks:
            if isinstance(callback, Curriculum):
                callback.validate_law(law)
        model.parametrization.initialise(self.seeds)
        validate_weight_checks(self.weight_checks, model, law)

    def _finalize(self, record: RunRecord, session: Session) -> RunRecord:
        """Finalize a finished run: export its checkpoint and evaluate its checks, as far as missing."""
        if not self._is_exported(record):
            from icl.training.lightning_checkpoint import export

            with atomic.writing(session.outputs):
                export(record)
        return self._with_verdicts(record, session)

    def _is_exported(self, record: RunRecord) -> bool:
        return not self.config["checkpoint"] or (record.path / layout.LIGHTNING).exists()

    def _missing_verdicts(self, record: RunRecord) -> list[WeightCheck]:
        if record.run.get("diverged"):
            return []  # the answers would be about other seeds than asked
        known = {verdict["question"] for verdict in record.verdicts}
        return [question for question in self.weight_checks if question.fingerprint not in known]

    def _with_verdicts(self, record: RunRecord, session: Session) -> RunRecord:
        """Adds the verdicts a finished run was not asked for when it was made, or that other code gave."""
        unanswered = self._missing_verdicts(record)
        if not unanswered:
            return record
        path = record.path / "verdicts.json"
        if path.exists() and read_json(path) is None:
            session.info(f"{path}: is damaged; its checks are asked again")
        new = evaluate(unanswered, of_run(record.path))
        names = {verdict["check"] for verdict in new}
        kept = [verdict for verdict in record.verdicts if verdict["check"] not in names]
        with atomic.writing(session.outputs):
            write_record(path, {"verdicts": [*kept, *new]})
        return RunRecord(record.path, record.run)  # the old one has read its verdicts

    def _note(self, record: RunRecord, session: Session) -> LoggedOnce:
        verdicts = sorted(verdict["question"] for verdict in record.verdicts)
        content = {"verdicts": verdicts, "heatmaps": self.config["callbacks"]}
        run_id = f"{self.identity}-{record.run['attempt']}"
        return LoggedOnce(session.logger, session.outputs, run_id, content)

    @contextlib.contextmanager
    def observers(
        self, plan: TrainingPlan, session: Session, attempt: int
    ) -> Iterator[Sequence[RunObserver]]:
        """W&B and other loggers where they are asked for; who listens to the session hears of progress."""
        done = self._stored(session)
        if done is None:  # it is being made, by the one process that holds its lock
            with self._open_loggers(plan, session, attempt) as told:
                yield told
            return
        note = self._note(done, session)
        with note.alone(session.info):
            if note.is_there:  # another process has told it meanwhile
                yield ()
                return
            with self._open_loggers(plan, session, attempt) as told:
                yield told

    @contextlib.contextmanager
    def _open_loggers(
        self, plan: TrainingPlan, session: Session, attempt: int
    ) -> Iterator[Sequence[RunObserver]]:
        from icl.callbacks import Progress, WeightHeatmaps
        from icl.callbacks.run_logger import RunLoggerCallback
        from icl.sinks.sink import NullSink

        item, seeds = Item("train", self.id), plan.seeds
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        for callback in plan.callbacks:
            if isinstance(callback, Progress):
                callback.tell = lambda done, text: session.tell(Progressed(item, done, f"{which}, {text}"))
        heatmaps = [callback for callback in plan.callbacks if isinstance(callback, WeightHeatmaps)]
        arrays, steps = plan.law.arrays(), plan.train.steps
        live, told = session.logger.mode == "online", []
        guarded = self._sinks(session, attempt)
        with contextlib.ExitStack() as opened:
            for sink in map(opened.enter_context, guarded):
                if not isinstance(sink, NullSink):
                    told.append(RunLoggerCallback(sink, arrays, plan.seeds, steps, heatmaps, live=live))
            yield told
        records = [teller.told for teller in told if teller.told is not None]
        if records and not any(sink.has_failed for sink in guarded):
            self._note(records[0], session).leave(session.info)

    def _sinks(self, session: Session, attempt: int) -> list[SafeSink]:
        from icl.sinks.safe import SafeSink
        from icl.sinks.wandb_sink import open_sink

        run_id, logger = f"{self.identity}-{attempt}", session.logger
        wandb = open_sink(
            logger,
            outputs=session.outputs,
            group=session.group or self.group,
            job_type="train",
            run_id=run_id,
            name=f"{self.id} {self.identity}",
            config=dict(self.config),
            say=session.info,
            tags=(self.id.partition("/")[0], self.scale),
        )
        sinks = [SafeSink(wandb, f"{self.id}: W&B", session.info, strict=under_agent())]
        for name, node in logger.lightning.items():
            from icl.sinks.lightning import open_logger

            other = open_logger(f"logger.{name}", node, self.id, run_id, self.config)
            sinks.append(SafeSink(other, f"{self.id}: logger.{name}", session.info))
        return sinks

    def _document(self, record: RunRecord, *, cached: bool, seconds: float = 0.0) -> Document:
        run = record.run
        wanted = {question.fingerprint for question in self.weight_checks}
        error = run["notes"][-1] if run.get("diverged") else None
        return {
            "run_dir": str(record.path),
            "fingerprint": run["fingerprint"],
            "status": "failed" if error else run["status"],
            "error": error,
            "cached": cached,
            "resumed": run["resumed"] > 0,
            "steps": run["steps"],
            "seconds": seconds if cached else run["seconds"],
            "metrics": run["metrics"],
            "checkpoint": str(record.path / layout.LIGHTNING) if self.config["checkpoint"] else None,
            "verdicts": [verdict for verdict in record.verdicts if verdict["question"] in wanted],
        }


def parse(composed: Composed, session: Session) -> TrainRequest:
    """Parse what can be validated without torch; `TrainRequest.parts` validates the rest."""
    config = dict(composed.settings)
    seeds = resolved_seeds(config["seeds"], config["seed"])
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
    asked = weight_checks_of([names] if isinstance(names, str) else names, scale, about, session)
    fitting, instead = _fitting(asked, composed.may_not_fit, config, seeds, session)
    config["train"] = {**config["train"], **instead}
    science = {key: by_content(config[key]) for key in SCIENCE}
    science["precision"] = config["trainer"].get("precision")
    count = processes(config["trainer"].get("devices", 1), config["trainer"].get("num_nodes", 1))
    science |= {"callbacks": shaping} if (shaping := _training_callbacks(config["callbacks"])) else {}
    roots = (*targets({**{key: config[key] for key in SCIENCE}, "callbacks": shaping}), *TRAINING)
    return TrainRequest(
        id=_experiment_name(config["name"]),
        identity=_identity(science, seeds, count),
        group=_identity(science, None, count),
        seeds=seeds,
        config={k: v for k, v in config.items() if k not in _NOT_STORED},
        digest=code_digest(roots),
        roots=roots,
        scale=scale,
        processes=count,
        science=science,
        weight_checks=fitting,
        note=_note(composed.left_out, [one.check for one in asked if one not in fitting], instead),
    )


def _fitting(
    asked: tuple[WeightCheck, ...],
    keys: Sequence[str],
    config: Mapping[str, Any],
    seeds: Sequence[int],
    session: Session,
) -> tuple[tuple[WeightCheck, ...], dict[str, Any]]:
    """Those that can be asked of such weights, and settings of `train` in the place of those that cannot be;
    `keys` were set for another task or model."""
    if not keys:
        return asked, {}
    train = config["train"]
    about = [keys, config["task"], config["model"], train, [one.fingerprint for one in asked]]
    key = (_fitting, json.dumps(about, sort_keys=True, default=str))
    if key not in session.cache:
        from icl.training.estimators import make_estimator
        from icl.training.load import law_and_model

        law, model = law_and_model(config, seeds)
        model.parametrization.initialise(seeds)
        kept = tuple(one for one in asked if "checks" not in keys or _can_judge(one, model, law))
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
    """Looked at once by all jobs of a sweep, whose runs share a folder; nothing is made meanwhile."""
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
    """A relative folder name."""
    from icl.runs.layout import record_path

    try:
        record_path(Path(), "runs", str(name), "0" * 12)
    except InputError:
        raise InputError(f"name={str(name)[:80]}: must be a relative name such as mylab/first") from None
    if redact(str(name)) != str(name):
        raise InputError("name: holds what looks like a password or a key; runs are filed under it")
    return str(name)


def _compared(config: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if k not in _NOT_COMPARED}
