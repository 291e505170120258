"""`icl bench bench=train`: a training step by path, context length and number of seeds; a whole run."""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from icl.bench import kernel
from icl.bench.command import run_icl
from icl.bench.timing import SpeedComparison, compare
from icl.callbacks import (
    Checkpoints,
    CriticalPointGradient,
    DistanceToSet,
    ExactRisk,
    Progress,
    WeightHeatmaps,
)  # fmt: skip
from icl.models import LinearTransformer, Parametrization, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression
from icl.training.estimators import make_estimator
from icl.training.module import EnsembleModule
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer
from icl.training.schedules import Constant
from icl.training.settings import TrainSettings
from icl.training.stream import PromptStream

BATCH, SMALL = 20_000, 64
STEPS, OVERHEAD_MS = 100, 0.3
PAIRS = 3  # for each repeat: a difference of a tenth needs more of them than ratios do
LAPTOP_SECONDS, LAPTOP_MB = 60, 1536


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    yield from kernel.rows(repeats)
    for comparison in _comparisons(repeats):
        yield asdict(comparison)
    yield overhead(repeats)
    yield _laptop_run()


def _comparisons(repeats: int) -> Iterator[SpeedComparison]:
    tokens, gram = Step(SparseA, path="tokens"), Step(SparseA)
    yield compare("tokens / Gram, sampled", ("tokens", tokens.add), ("Gram", gram.add), repeats, at_least=10)
    expected = Step(SparseA, estimator="expected")
    yield compare(
        "tokens / Gram, task and query integrated out",
        ("tokens", tokens.add),
        ("Gram", expected.add),
        repeats,
        at_least=10,
    )
    del tokens
    long = Step(SparseA, context=20_000, estimator="expected")
    yield compare(
        "context 20,000 / 20, draw and step",
        ("n=20,000", long.draw_and_take),
        ("n=20", expected.draw_and_take),
        repeats,
        at_most=1.1,
    )
    with_b, without = Step(SparseAB, estimator="expected"), expected
    yield compare("sparse_ab / sparse_a", ("sparse_ab", with_b.add), ("sparse_a", without.add), repeats)
    for batch in (500, 2000, 20_000):
        five = Step(SparseA, estimator="expected", batch=batch, seeds=range(5))
        one = Step(SparseA, estimator="expected", batch=batch)
        limit = 2.5 if batch <= 1000 else 6.0
        yield compare(
            f"5 seeds / 1 seed, batch {batch}",
            ("5 seeds", five.add),
            ("1 seed", one.add),
            repeats,
            at_most=limit,
        )


def overhead(repeats: int) -> dict[str, Any]:
    """Measure what Lightning and its hooks add to a step: batches of 100 steps, a bare loop after each."""
    bare = Step(SparseA, estimator="expected", batch=SMALL)
    model = LinearTransformer(SparseA(5, 3, 0.1))
    model.parametrization.initialise((0,), torch.float32)
    total = STEPS * (1 + PAIRS * repeats)  # the first batch warms up
    settings = TrainSettings(total, SMALL, STEPS, "expected", clip=0.01)
    module = EnsembleModule(model, bare.law, settings, bare.spec, (0,), torch.float32)
    stream = PromptStream(bare.estimator, (0,), SMALL, STEPS, total, 0, torch.float32)
    turns = Turns(bare.add, STEPS)
    watching = [
        DistanceToSet(), ExactRisk(0), CriticalPointGradient(0), WeightHeatmaps(0), Progress(), Checkpoints()
    ]  # fmt: skip
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=1, callbacks=[*watching, turns],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer.fit(module, DataLoader(stream, batch_size=None))
    lightning, loop = (statistics.median(times[1:]) / STEPS * 1e3 for times in (turns.first, turns.second))
    added = statistics.median(a - b for a, b in zip(turns.first[1:], turns.second[1:], strict=True))
    ms = added / STEPS * 1e3
    return {
        "name": f"Lightning's share of a step, {STEPS} a batch, {len(watching)} callbacks",
        "overhead_ms": ms,
        "lightning_ms": lightning,
        "loop_ms": loop,
        "target": f"below {OVERHEAD_MS:g} ms",
        "met": ms < OVERHEAD_MS,
    }


class Turns(pl.Callback):
    """CPU seconds of each Lightning batch, and of the other work, done so many times after it. What Lightning
    adds is Python, in this thread; a busy machine's clock would add what others do."""

    def __init__(self, other: Callable[[], object], times: int) -> None:
        self.other, self.times = other, times
        self.first: list[float] = []
        self.second: list[float] = []

    def on_train_batch_start(self, *args: Any) -> None:
        self.started = time.thread_time()

    def on_train_batch_end(self, *args: Any) -> None:
        self.first.append(time.thread_time() - self.started)
        started = time.thread_time()
        for _ in range(self.times):
            self.other()
        self.second.append(time.thread_time() - started)


class Step:
    """Make an optimizer step of L = 3, d = 5 in float32: forward, backward, clip, Adam."""

    def __init__(
        self,
        family: type[Parametrization],
        *,
        path: str = "gram",
        context: int = 20,
        estimator: str = "sampled",
        batch: int = BATCH,
        seeds: Sequence[int] = (0,),
    ) -> None:
        self.law = LinearRegression(context=context, task_covariance="inverse").law(seeds)
        parametrization = family(5, 3, 0.1)
        parametrization.initialise(seeds, torch.float32)
        self.model = LinearTransformer(parametrization, path)
        self.estimator = make_estimator(estimator, self.model, self.law).to(torch.float32)
        self.spec = OptimizerSpec(torch.optim.Adam, {"lr": 1e-4}, Constant())
        self.optimizer = ReplicaOptimizer(
            self.spec, dict(parametrization.named_parameters()), [0.01] * len(seeds)
        )
        self.batch, self.seeds, self.set = batch, seeds, 0
        self.draw()

    def draw(self) -> None:
        streams = [generator(seed, "train", self.set) for seed in self.seeds]
        self.set += 1
        prompts = {k: v.float() for k, v in self.estimator.draw(streams, self.batch).items()}
        self.pieces = self.estimator.pieces(prompts)

    def add(self) -> None:
        self.optimizer.clear_gradients()
        for share, piece in self.pieces:
            (self.estimator.risk(self.model, piece) * share).sum().backward()
        self.optimizer.attach_gradients()
        self.optimizer.clip()
        self.optimizer.engine.step()

    def draw_and_take(self) -> None:
        self.draw()
        self.add()


def _laptop_run() -> dict[str, Any]:
    """`icl train experiment=ahn/theorem3` in a process of its own, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        ran = run_icl("train", "experiment=ahn/theorem3", f"paths.outputs={folder}")
    by_seed = ran.document.get("metrics", {}).get("dist_preconditioned", {}).get("by_seed", {})
    distance = max(by_seed.values(), default=float("inf"))
    row = ran.row("laptop run of ahn/theorem3, 5 seeds", LAPTOP_SECONDS, LAPTOP_MB)
    target = f"Dist < .05, {row['target']}"
    return row | {
        "dist_preconditioned": distance,
        "target": target,
        "met": row["met"] and distance < 0.05,
    }
