"""`icl bench bench=ahn`: the laptop figures from nothing, and the variances of the two estimators.

R replicas, K batches, X entries of a gradient.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from icl.bench.command import run_icl
from icl.random import generator
from icl.training.estimators import make_estimator
from icl.training.restored import TrainedRun, load_run

FIGURES_SECONDS, FIGURES_MB = 240, 2048
BATCH, BATCHES = 1000, 16


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured; `repeats` times 16 batches for the variances."""
    with tempfile.TemporaryDirectory() as folder:
        yield from figures(folder)
        for record in _runs(Path(folder)):
            yield from variance_ratios(record, BATCHES * repeats)


def figures(folder: str) -> Iterator[dict[str, Any]]:
    """`icl figure figure=ahn/all` in a process of its own."""
    ran = run_icl("figure", "figure=ahn/all", f"paths.outputs={folder}")
    documents = ran.document.get("figures", [])
    for document in documents:
        name = f"{document['figure']} at laptop"
        yield {"name": name, "seconds": document["seconds"], "target": "", "met": True}
    yield ran.row(f"{len(documents)} figures together", FIGURES_SECONDS, FIGURES_MB)


def _runs(outputs: Path) -> Iterator[TrainedRun]:
    for name in ("theorem3", "theorem4_lbfgs"):
        for path in sorted((outputs / "runs" / "ahn" / name).glob("*/run.json")):
            yield load_run(path.parent)


def variance_ratios(run: TrainedRun, batches: int) -> Iterator[dict[str, Any]]:
    """Variance of a batch's gradient, sampled over expected, at the first, middle and last stored weights.

    Both estimators see the same contexts: what differs is that one samples task and query, too, so its
    variance is the larger one. With B the gradients are heavy-tailed: what is measured is the variance of a
    few rare prompts, and no number is asked for. Beside it, for a typical batch, the ratio of the median
    squared deviations from the median.
    """
    models, law = list(run.stored_models()), run.law
    for index in (0, len(models) // 2, len(models) - 1):
        step, model = models[index]
        model.requires_grad_(True)
        variance, typical = {}, {}
        for name in ("sampled", "expected"):
            estimator = make_estimator(name, model, law)
            gradients = []
            for batch in range(batches):
                streams = [generator(seed, "eval", batch) for seed in run.run["seeds"]]  # S is drawn first
                risk_R = estimator.risk(model, estimator.draw(streams, BATCH))
                gradients.append(_gradient(risk_R, list(model.parametrization.parameters())))
            gradient_KRX = torch.stack(gradients)
            variance[name] = gradient_KRX.var(0).sum(-1)
            typical[name] = (gradient_KRX - gradient_KRX.median(0).values).square().sum(-1).median(0).values
        variance_R, typical_R = (spread["sampled"] / spread["expected"] for spread in (variance, typical))
        yield {
            "name": f"{run.run['experiment']} step {step}: gradient variance sampled / expected",
            "variance_ratio": float(variance_R.median()),
            "typical_ratio": float(typical_R.median()),
            "by_seed": variance_R.tolist(),
            "target": "" if "B" in run.weights else "above 1",
            "met": bool("B" in run.weights or variance_R.median() > 1),
        }


def _gradient(risk_R: Tensor, parameters: list[Tensor]) -> Tensor:
    """(R, all entries)."""
    grads = torch.autograd.grad(risk_R.sum(), parameters)
    return torch.cat([grad.flatten(1) for grad in grads], dim=1)
