"""A training run: a request becomes a plan, the plan a run.

A request is known without torch: the identity of the run and the place of its record. A finished record
of this very config answers it at once; otherwise the parts are built, which validates them, and only then is
Lightning imported.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from icl.config.compose import Composed
from icl.config.objects import target_class, target_of
from icl.config.session import Session
from icl.config.values import by_content, processes, resolve_seeds
from icl.errors import InputError
from icl.jobs.execution.memory import fits_in_memory
from icl.jobs.requests.check import CheckRequest, validate_weight_checks, weight_checks_of
from icl.jobs.requests.given_weights import of_model, of_run
from icl.jobs.requests.request import Document, StoredResult
from icl.loggers.names import grouped, name_of_overrides
from icl.progress import ItemProgress, WorkItem
from icl.redact import redact
from icl.runs import atomic
from icl.runs.code import TRAINING, code_digest, targets
from icl.runs.documents import same
from icl.runs.fingerprint import fingerprint
from icl.runs.layout import record_path
from icl.runs.record import RunRecord, find_done, invalid_reason
from icl.runs.store import RunStore

if TYPE_CHECKING:
    from icl.callbacks.run_logger import RunLogger
    from icl.models import Transformer
    from icl.tasks.law import Law
    from icl.training.plan import EnsembleMember, RunComponents, TrainingPlan

SCIENCE = ("task", "model", "optimizer", "train")
_NO_SCIENCE = ("log_every",)  # no number of a run depends on it
OWN = (*SCIENCE, "trainer", "callbacks", "name", "seeds", "seed", "checks", "optimized_metric")
_NOT_STORED = ("format", "force", "stale", "paths", "optimized_metric")
# Those of icl, so that none is imported to know what a run is.
TRAINING_CALLBACKS = ("Curriculum", "EarlyStopping", "Growth")
_NOT_COMPARED = ("logger", "checks")  # validated in the request itself


@dataclass(frozen=True)
class TrainRequest:
    """A training run that is wanted: `lookup` finds it, `execute` makes it, or evaluates the checks that a
    finished one lacks."""

    kind: ClassVar[str] = "train"
    id: str  # the experiment
    identity: str
    group: str
    config: Mapping[str, Any]  # as the record stores it
    digest: str
    roots: tuple[str, ...]
    scale: str
    processes: int
    weight_checks: tuple[CheckRequest, ...]
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)  # for run.json: who asked for it

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.config["seeds"])

    def lookup(self, session: Session) -> StoredResult | None:
        record = self._stored(session)
        if record is None:
            return None
        missing = ", ".join(check.id for check in self._missing_checks(record))
        left = f"not evaluated yet: {missing}" if missing else ""
        stale, document = self._stale(record, session), self._document(record, cached=True)
        return StoredResult(document, record.path, record.run, stale, left)

    def execute(self, session: Session) -> Document:
        record = self.finished(session)
        if record is not None:
            return self._document(self._judged(record, session), cached=True)
        from icl.training.run import train_runs

        (outcome,) = train_runs([self.member(session)], force=session.force)
        if isinstance(outcome, Exception):
            raise outcome
        return self._document(self._judged(outcome.record, session), cached=outcome.cached)

    @functools.cached_property
    def rank(self) -> int:
        """The rank of this process among those of the run."""
        from icl.training.processes import rank_of

        return rank_of(self.processes, self.config["trainer"]["num_nodes"])

    def work(self, session: Session) -> Document:
        """Train with rank 0, which keeps the record and has the document."""
        if self.finished(session) is None:
            from icl.training.run import train_as_worker

            train_as_worker(self.plan(replace(session, on_event=lambda _: None)), force=session.force)
        return {}

    def validate(self) -> None:
        self.components  # noqa: B018
        if loggers := self.config["logger"]:
            from icl.loggers.lightning import build_loggers

            build_loggers(loggers, name=self.id, display_name=self.id, version=self.identity)

    def member(self, session: Session) -> EnsembleMember:
        """Return the run for `train_runs`, which reports progress and logs while it trains."""
        from icl.callbacks import Progress
        from icl.training.plan import EnsembleMember

        plan = self.plan(session)
        item, seeds = WorkItem("train", self.id), plan.seeds
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        for callback in plan.callbacks:
            if isinstance(callback, Progress):
                callback.report = lambda done, text: session.on_event(
                    ItemProgress(item, done, f"{which}, {text}")
                )
        observers = functools.partial(self.observers, plan, session)
        return EnsembleMember(plan, self.judge, observers, session.info)

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
            origin=self.origin,
            **vars(self.components),
        )

    def judge(self, model: Transformer, law: Law) -> Sequence[Mapping[str, Any]]:
        return [check.evaluate(of_model(model, law)) for check in self.weight_checks]

    @contextlib.contextmanager
    def observers(self, plan: TrainingPlan, session: Session, attempt: int) -> Iterator[Sequence[RunLogger]]:
        """Open the loggers for one attempt at the run; close them as failed if it raises or diverges."""
        if not session.logger:
            yield []
            return
        from icl.callbacks.run_logger import RunLogger
        from icl.loggers.lightning import WandbLogger, build_loggers

        loggers = build_loggers(session.logger, **self._names(session, attempt))
        for logger in loggers:
            if isinstance(logger, WandbLogger):
                logger.notify = session.info
            about = {"paper": self.id.partition("/")[0], "experiment": self.id}
            logger.log_hyperparams(redact({**self.config, **about}))
        observer = RunLogger(loggers, plan)
        failed = True
        try:
            yield [observer]
            failed = observer.has_diverged
        finally:
            for logger in loggers:
                logger.finalize("failed" if failed else "success")
                if isinstance(logger, WandbLogger):
                    logger.finish(exit_code=int(failed))

    def _names(self, session: Session, attempt: int) -> dict[str, Any]:
        """Return what a logger may call this attempt."""
        typed, version = self.origin.get("overrides", ()), f"{self.identity}-{attempt}"
        own_group = grouped(name_of_overrides(self.id, typed, with_seeds=False), self.group)
        return {
            "name": self.id,  # of a folder
            "display_name": name_of_overrides(self.id, typed),
            "version": version,
            "run_name": f"{self.id} {version}",  # MLflow's
            "group": session.group or own_group,
            "job_type": "train",
            "tags": [self.id.partition("/")[0], self.scale],
        }

    @functools.cached_property
    def components(self) -> RunComponents:
        """The parts of a TrainingPlan, built and tried out against one another."""
        with fits_in_memory("train.batch, task.dim, task.context, model.layers, optimizer.history_size"):
            from icl.training.load import law_and_model

            built = law_and_model(self.config["task"], self.config["model"], self.seeds)
            from icl.training.build import build_parts, validate  # Lightning: ten seconds on a cold machine

            parts = build_parts(self.config, built)
            validate(parts, self.seeds, self.processes)
            validate_weight_checks(self.weight_checks, parts.model, parts.law)
        return parts

    def _stored(self, session: Session) -> RunRecord | None:
        """Return the finished record of this very config, made by whatever code."""
        folder = RunStore(session.outputs).path(self.id, self.identity)
        record = find_done(folder, None)
        if record is None or record.path != folder:
            return None
        stored, wanted = _compared(record.config), _compared(self.config)
        return record if same(stored, wanted) or same(stored, redact(wanted)) else None

    def finished(self, session: Session) -> RunRecord | None:
        """Return the stored record if it need not be trained again."""
        record = None if session.force else self._stored(session)
        return None if record is None or self._stale(record, session) else record

    def _stale(self, record: RunRecord, session: Session) -> str:
        """Return why a stored record does not count, "" if it does."""
        return invalid_reason(record.path, record.run, None if session.uses_stale else self.digest) or ""

    def _missing_checks(self, record: RunRecord) -> list[CheckRequest]:
        """Return the checks whose verdicts the run's record lacks, or that other code gave."""
        if record.run.get("diverged"):
            return []  # verdicts would be about other seeds than those wanted
        known = {verdict["check_id"] for verdict in record.verdicts}
        return [check for check in self.weight_checks if check.check_id not in known]

    def _judged(self, record: RunRecord, session: Session) -> RunRecord:
        """Return the record with all verdicts."""
        missing = self._missing_checks(record)
        if not missing:
            return record
        weights = of_run(record.path)
        new = [check.evaluate(weights) for check in missing]
        names = {verdict["check"] for verdict in new}
        kept = [verdict for verdict in record.verdicts if verdict["check"] not in names]
        with atomic.writing(session.outputs):
            return record.with_verdicts([*kept, *new])

    def _document(self, record: RunRecord, *, cached: bool) -> Document:
        run = record.run
        wanted = {check.check_id for check in self.weight_checks}
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
            "seconds": 0.0 if cached else run["seconds"],
            "metrics": run["metrics"],
            "verdicts": [verdict for verdict in record.verdicts if verdict["check_id"] in wanted],
        }


def parse(composed: Composed, session: Session) -> TrainRequest:
    """Parse what can be validated without torch; `TrainRequest.components` validates the rest."""
    config = dict(composed.settings)
    seeds = resolve_seeds(config["seeds"], config["seed"])
    config |= {"seeds": list(seeds), "seed": None, "logger": session.logger}
    for key in (*SCIENCE, "trainer", "callbacks"):
        if not isinstance(config[key], dict):
            raise InputError(f"{key}={config[key]}: must be a group of settings")
    if not isinstance(config["optimized_metric"], str | None):
        raise InputError(f"optimized_metric={config['optimized_metric']}: must be the name of a metric")
    for key in ("task", "model", "optimizer"):
        target_of(key, config[key])
    name, names, scale = str(config["name"]), config["checks"] or [], str(config["scale"])
    try:
        record_path(Path(), "runs", name, "0" * 12)
    except InputError:
        raise InputError(f"name={name[:80]}: must be a relative name such as mylab/first") from None
    if redact(name) != name:
        raise InputError("name: holds what looks like a password or a key; runs are filed under it")
    about = targets(config["task"], config["model"])
    trainer, shaping = config["trainer"], _training_callbacks(config["callbacks"])
    science = {key: _deciding(by_content(config[key])) for key in SCIENCE}
    science["precision"] = trainer.get("precision")
    science |= {"callbacks": shaping} if shaping else {}
    count = processes(trainer.get("devices", 1), trainer.get("num_nodes", 1))
    roots = (*targets({**{key: config[key] for key in SCIENCE}, "callbacks": shaping}), *TRAINING)
    chosen = {group: option for group, option in composed.choices.items() if option is not None}
    return TrainRequest(
        id=name,
        identity=_identity({**science, "seeds": list(seeds)}, count),
        group=_identity(science, count),
        config={k: v for k, v in config.items() if k not in _NOT_STORED},
        digest=code_digest(roots),
        roots=roots,
        scale=scale,
        processes=count,
        weight_checks=weight_checks_of([names] if isinstance(names, str) else names, scale, about, session),
        origin={
            "overrides": list(composed.overrides),
            "choices": {group: option for group, option in chosen.items() if not group.startswith("hydra/")},
            "figure": session.figure,
        },
    )


def _training_callbacks(callbacks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the callbacks that are part of what a run is, by their role."""
    nodes = {name: node for name, node in callbacks.items() if isinstance(node, dict) and "_target_" in node}
    return {name: node for name, node in nodes.items() if _trains(f"callbacks.{name}", node["_target_"])}


def _trains(key: str, target: str) -> bool:
    if target.startswith("icl."):
        return target.rpartition(".")[2] in TRAINING_CALLBACKS
    return getattr(target_class(key, target), "role", "") == "trains"


def _identity(about: Mapping[str, Any], processes: int) -> str:
    """Return the fingerprint of a run or, without seeds, of all that differ in these alone."""
    alone = fingerprint(about)
    return alone if processes == 1 else fingerprint({"alone": alone, "processes": processes})


def _deciding(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _NO_SCIENCE}


def _compared(config: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _deciding(v) if k == "train" else v for k, v in config.items() if k not in _NOT_COMPARED}
