"""`icl bench bench=train`: a training step by path, context length and number of seeds; a whole run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch

from icl.bench.command import run_icl
from icl.bench.timing import Comparison, compare
from icl.models import LinearTransformer, Parametrization, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression
from icl.training.estimators import make_estimator
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer
from icl.training.schedules import Constant

BATCH = 20_000
LAPTOP_SECONDS, LAPTOP_MB = 60, 1536


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    for comparison in _comparisons(repeats):
        yield asdict(comparison)
    yield _laptop_run()


def _comparisons(repeats: int) -> Iterator[Comparison]:
    tokens, gram = Step(SparseA, path="tokens"), Step(SparseA)
    yield compare(
        "tokens / Gram, sampled", ("tokens", tokens.take), ("Gram", gram.take), repeats, at_least=10
    )
    expected = Step(SparseA, estimator="expected")
    yield compare(
        "tokens / Gram, task and query integrated out",
        ("tokens", tokens.take),
        ("Gram", expected.take),
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
    yield compare("sparse_ab / sparse_a", ("sparse_ab", with_b.take), ("sparse_a", without.take), repeats)
    for batch in (500, 2000, 20_000):
        five = Step(SparseA, estimator="expected", batch=batch, seeds=range(5))
        one = Step(SparseA, estimator="expected", batch=batch)
        limit = 2.5 if batch <= 1000 else 6.0
        yield compare(
            f"5 seeds / 1 seed, batch {batch}",
            ("5 seeds", five.take),
            ("1 seed", one.take),
            repeats,
            at_most=limit,
        )


class Step:
    """One optimizer step of L = 3, d = 5 in float32: forward, backward, clip, Adam."""

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
        spec = OptimizerSpec(torch.optim.Adam, {"lr": 1e-4}, Constant())
        self.optimizer = ReplicaOptimizer(spec, dict(parametrization.named_parameters()), [0.01] * len(seeds))
        self.batch, self.seeds, self.set = batch, seeds, 0
        self.draw()

    def draw(self) -> None:
        streams = [generator(seed, "train", self.set) for seed in self.seeds]
        self.set += 1
        prompts = {k: v.float() for k, v in self.estimator.draw(streams, self.batch).items()}
        self.pieces = self.estimator.pieces(prompts)

    def take(self) -> None:
        for stack in self.optimizer.stacks.values():
            stack.grad = None
        for share, piece in self.pieces:
            (self.estimator.risk(self.model, piece) * share).sum().backward()
        self.optimizer.attach_gradients()
        self.optimizer.step()

    def draw_and_take(self) -> None:
        self.draw()
        self.take()


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
