"""One training run: found in the store, or made and kept there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from icl.runs.lock import say
from icl.runs.record import RunRecord
from icl.runs.store import RunStore
from icl.training.launch import spawn_group
from icl.training.loop import Judge, RunObserver, TrainingPlan, train


@dataclass(frozen=True)
class TrainResult:
    """A finished run and how it came about."""

    record: RunRecord
    cached: bool


@contextmanager
def no_observers(attempt: int) -> Iterator[Sequence[RunObserver]]:
    yield ()


def find_or_train(
    plan: TrainingPlan,
    *,
    force: bool = False,
    judge: Judge | None = None,
    follow: Callable[[int], AbstractContextManager[Sequence[RunObserver]]] = no_observers,
    say: Callable[[str], None] = say,
) -> TrainResult:
    """Trains unless a finished record exists; raises Interrupted after saving where a signal asks for it.

    `follow(attempt)` are those who follow that attempt, for as long as it takes; `say` is told of a wait.
    """
    store = RunStore(plan.outputs)
    identity = (plan.experiment, plan.fingerprint, plan.config, plan.digest, plan.roots)
    with store.begin(*identity, force=force, say=say) as run:
        if run.cached is not None:
            with follow(run.cached.run["attempt"]) as observers:
                for observer in observers:
                    observer.replay(run.cached)
            return TrainResult(run.cached, cached=True)
        with follow(run.attempt) as observers, spawn_group(plan) as company:
            record = train(plan, run, observers, judge, company)
            for observer in observers:
                observer.done(record)
    return TrainResult(record, cached=False)
