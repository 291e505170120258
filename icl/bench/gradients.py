"""A gradient of the risk sampled afresh, as the papers take it, over one of the exact risk."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from icl.bench.timing import SpeedComparison, compare
from icl.kernel import library
from icl.models import LinearTransformer, Parametrization
from icl.models.fused import fused_risk
from icl.random import generator
from icl.tasks.law import Law
from icl.training.estimators import make_estimator


def sampled_over_exact(
    name: str,
    family: Parametrization,
    law: Law,
    seeds: Sequence[int],
    batch: int,
    repeats: int,
    at_least: float | None = None,
) -> SpeedComparison:
    """`batch` prompts for each seed, drawn for every gradient; through the kernel where there is one."""
    family.initialise(seeds)
    model = LinearTransformer(family)
    sampled, population = (make_estimator(kind, model, law) for kind in ("sampled", "population"))

    def draw() -> dict[str, Tensor]:
        return sampled.draw([generator(seed, "train") for seed in seeds], batch)

    fused = None if library.why_none() else fused_risk(sampled.risk, model, draw())

    def on_samples() -> None:
        if fused is not None:
            fused(model, draw()).sum().backward()
            return
        for share, piece in sampled.pieces(draw()):
            (sampled.risk(model, piece).sum() * share).backward()

    return compare(
        f"{name}, {len(seeds)} seeds: minibatch / population risk",
        (f"batch {batch}", on_samples),
        ("exact", lambda: population.risk(model, {}).sum().backward()),
        repeats,
        at_least=at_least,
    )
