"""One training run: found in the store, or made and kept there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from icl.runs.lock import say
from icl.runs.record import RunRecord
from icl.runs.store import RunStore
from icl.training.beside import company_of
from icl.training.job import Follower, Judge, TrainingPlan, train


@dataclass(frozen=True)
class TrainResult:
    """A finished run and how it came about."""

    record: RunRecord
    cached: bool


@contextmanager
def nobody(attempt: int) -> Iterator[Sequence[Follower]]:
    yield ()


def run_plan(
    plan: TrainingPlan,
    *,
    force: bool = False,
    judge: Judge | None = None,
    follow: Callable[[int], AbstractContextManager[Sequence[Follower]]] = nobody,
    say: Callable[[str], None] = say,
) -> TrainResult:
    """Trains unless a finished record exists; raises Interrupted after saving where a signal asks for it.

    `follow(attempt)` are those who follow that attempt, for as long as it takes; `say` is told of a wait.
    """
    store = RunStore(plan.outputs)
    identity = (plan.experiment, plan.fingerprint, plan.config, plan.digest, plan.roots)
    with store.begin(*identity, force=force, say=say) as run:
        if run.cached is not None:
            with follow(run.cached.run["attempt"]) as followers:
                for follower in followers:
                    follower.found(run.cached)
            return TrainResult(run.cached, cached=True)
        with follow(run.attempt) as followers, company_of(plan) as company:
            record = train(plan, run, followers, judge, company)
            for follower in followers:
                follower.done(record)
    return TrainResult(record, cached=False)
