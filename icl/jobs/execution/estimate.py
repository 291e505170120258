"""Estimates of the time, disk and memory that training runs will take here, from a few steps of each.

A trial takes the first steps of the run itself, with all its seeds and its batch, in a folder of its own: at
most 60, for two seconds. Steps on the same prompts are timed apart from those that wait for new ones, since
runs differ in how often they draw. Rows of metrics, pictures and what is computed after training are not in
the time. Runs that differ in real numbers alone, such as a learning rate, share a trial.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from icl.config.session import Session
from icl.config.values import flatten
from icl.jobs.requests.train import TrainRequest
from icl.runs import checkpoint
from icl.runs.store import RunStore

STEPS, PER_BATCH, FEWEST = 60, 3, 6  # of a trial
ENOUGH, MOST = 2.0, 10.0  # seconds, after which one ends that has the fewest steps, or two
_HISTORY = 42  # snapshots in weights.npz, the final weights included
_CHECKPOINTS = 2 * (_HISTORY + 3)  # two, each of history, weights and their two moments
_LENGTHS = ("train.steps=", "train.log_every=", "optimizer.schedule.")
_ROW = 150  # bytes of metrics.csv for a seed at a step


@dataclass(frozen=True)
class StepCost:
    """Seconds of a step and of a set of new prompts; bytes of the weights."""

    step: float
    draw: float
    snapshot: float


@dataclass(frozen=True)
class RunEstimate:
    """Estimate of what the rest of a run takes."""

    request: TrainRequest
    cost: StepCost
    steps: int  # that are left

    @property
    def seconds(self) -> float:
        per_batch = self.request.config.train["steps_per_batch"]
        return self.steps * self.cost.step + -(-self.steps // per_batch) * self.cost.draw

    @property
    def bytes(self) -> float:
        train = self.request.config.train
        rows = (train["steps"] // train["log_every"] + 1) * len(self.request.seeds)
        return self.cost.snapshot * (_HISTORY + _CHECKPOINTS) + rows * _ROW


def estimates(requests: Iterable[TrainRequest], session: Session) -> list[RunEstimate]:
    """Return what each run will take here; `session.cache` keeps the trials."""
    found = []
    for request in requests:
        key = ("step cost", _shape(request))
        if key not in session.cache:
            session.cache[key] = _tried(request, session)
        steps = request.config.train["steps"] - _steps_done(request, session.outputs)
        found.append(RunEstimate(request, session.cache[key], max(steps, 0)))
    return found


def as_text(name: str, found: Sequence[RunEstimate]) -> str:
    """Return the estimate as text, the longest runs first."""
    total, size = sum(run.seconds for run in found), sum(run.bytes for run in found)
    head = f"{name}: {len(found)} run{'' if len(found) == 1 else 's'} to train, about {in_words(total)} here"
    lines = [
        f"{head} (from the first steps of each), "
        f"{max(size / 1e6, 1):.0f} MB of disk, {_peak() / 1e9:.1f} GB of memory; "
        "it can be interrupted, and goes on"
    ]
    longest = sorted(found, key=lambda run: -run.seconds)[:5]
    for run in longest if len(found) > 1 else ():
        each = run.seconds / max(run.steps, 1)
        name = f"{run.request.id}/{run.request.identity}"
        lines.append(f"  {name}: {run.steps:,} steps of {each:.2g} s, {in_words(run.seconds)}")
    return "\n".join(lines)


def in_words(seconds: float) -> str:
    """Return a time as text: 5.2 h, 12 min, 8 s."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _shape(request: TrainRequest) -> str:
    """Return what the cost of a step depends on: every setting but seeds, real numbers, and how long is
    trained."""
    parts = {
        name: getattr(request.config, name) for name in ("task", "model", "optimizer", "train", "trainer")
    }
    flat = {
        key: value
        for key, value in flatten(parts).items()
        if not isinstance(value, float) and not f"{key}=".startswith(_LENGTHS)
    }
    return json.dumps([request.id, len(request.seeds), flat], sort_keys=True, default=str)


def _steps_done(request: TrainRequest, outputs: Path) -> int:
    """Return the step of the newest checkpoint that today's code continues from."""
    folder = RunStore(outputs).path(request.id, request.identity) / "checkpoints"
    for path in checkpoint.candidates(folder)[:1]:
        saved = checkpoint.load(path)
        return int(saved["state"]["step"]) if saved["digest"] == request.digest else 0
    return 0


def _tried(request: TrainRequest, session: Session) -> StepCost:
    """Train for a few steps in a folder of its own."""
    import pytorch_lightning as pl

    from icl.training.plan import RunPart
    from icl.training.run import train_runs

    ends: list[float] = []
    snapshot = 0

    class Clock(pl.Callback):
        def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
            nonlocal snapshot
            snapshot = sum(tensor.numel() * tensor.element_size() for tensor in pl_module.trained.values())
            ends.append(time.perf_counter())

        def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
            ends.append(time.perf_counter())
            seconds = ends[-1] - ends[0]
            if (step >= FEWEST and seconds > ENOUGH) or (step >= 2 and seconds > MOST):
                raise TimeoutError

    per_batch = min(PER_BATCH, request.config.train["steps_per_batch"])
    with tempfile.TemporaryDirectory() as folder:
        plan = replace(request).plan(replace(session, outputs=Path(folder)))  # with parts of its own
        train = replace(plan.train, steps=STEPS, steps_per_batch=per_batch, log_every=STEPS)
        plan = replace(plan, train=train, callbacks=[Clock()], outputs=Path(folder))
        (outcome,) = train_runs([RunPart(plan, notify=lambda line: None)])
    if isinstance(outcome, Exception) and not isinstance(outcome, TimeoutError):
        raise outcome
    steps = [after - before for before, after in itertools.pairwise(ends)]
    return StepCost(*_step_and_draw(steps, per_batch), snapshot)


def _step_and_draw(steps: Sequence[float], per_batch: int) -> tuple[float, float]:
    """Return the seconds of a step, and those of a draw beyond it. The first step prepares the kernel."""
    later = list(enumerate(steps))[1:]
    draws = [seconds for i, seconds in later if i % per_batch == 0]
    others = [seconds for i, seconds in later if i % per_batch]
    step = statistics.median(others or draws)
    return step, max(statistics.median(draws) - step, 0.0) if draws and others else 0.0


def _peak() -> float:
    """Return the most bytes this process has taken so far."""
    import resource
    import sys

    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (
        1 if sys.platform == "darwin" else 1024
    )
