"""`icl bench bench=ahn`: the laptop figures from nothing, and the variances of the estimators.

R replicas, K batches, B prompts, X entries of a gradient.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from icl.bench.command import run_icl
from icl.models import LinearTransformer
from icl.random import generator
from icl.tasks.integrated import Tilted
from icl.tasks.linear_regression import LinearRegressionLaw, linear_regression
from icl.training.estimators import make_estimator
from icl.training.load import TrainedRun, load_run

FIGURES_SECONDS, FIGURES_MB = 300, 1536
BATCH, BATCHES = 1000, 16


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured; `repeats` times 16 batches for the variances."""
    with tempfile.TemporaryDirectory() as folder:
        yield from figures(folder)
        for record in _runs(Path(folder)):
            yield from variance_ratios(record, BATCHES * repeats)
            if "B" in record.weights:
                yield tail_ratio(record, BATCHES * repeats)


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
    models = list(run.stored_models())
    for index in (0, len(models) // 2, len(models) - 1):
        step, model = models[index]
        variance, typical = {}, {}
        for name in ("sampled", "expected"):
            gradient_KRX, _ = batch_gradients(run, model, name, batches)
            variance[name], typical[name] = gradient_KRX.var(0).sum(-1), typical_deviation(gradient_KRX)
        variance_R, typical_R = (spread["sampled"] / spread["expected"] for spread in (variance, typical))
        yield {
            "name": f"{run.run['experiment']} step {step}: gradient variance sampled / expected",
            "variance_ratio": float(variance_R.median()),
            "typical_ratio": float(typical_R.median()),
            "by_seed": variance_R.tolist(),
            "target": "" if "B" in run.weights else "above 1",
            "met": bool("B" in run.weights or variance_R.median() > 1),
        }


def tail_ratio(run: TrainedRun, batches: int) -> dict[str, Any]:
    """Variance of the gradient on one prompt times the seconds of a batch, plain over tilted, at the final
    weights.

    Both variances are means over one weighted draw: a plain one hardly ever holds the prompts that carry
    what its own gradient varies by. Beside it what a typical batch shows, which is the opposite.
    """
    step, model = list(run.stored_models())[-1]
    law, seeds = linear_regression(run.law, "bench=ahn"), run.run["seeds"]
    tilted = make_estimator("tilted", model, law)
    assert isinstance(tilted, Tilted)
    streams = [generator(seed, "eval") for seed in seeds]
    S_RBDD, weight_RB = law.tilted_grams(streams, BATCH * batches, tilted.inflations_R)
    ratios = []
    for r, inflations in enumerate(tilted.inflations_R):
        gradient_BX = torch.cat([prompt_gradients(model, law, r, S_BDD) for S_BDD in S_RBDD[r].split(BATCH)])
        terms_BX = weight_RB[r, :, None] * gradient_BX
        plain = float((terms_BX * gradient_BX).mean(0).sum() - terms_BX.mean(0).square().sum())
        strata = [terms_BX[c :: len(inflations)] for c in range(len(inflations))]
        ratios.append(plain / float(sum(s.var(0).sum() * len(s) for s in strata)) * len(terms_BX))
    plain_KRX, plain_seconds = batch_gradients(run, model, "expected", batches)
    tilted_KRX, tilted_seconds = batch_gradients(run, model, "tilted", batches)
    cost = plain_seconds / tilted_seconds
    typical_R = typical_deviation(plain_KRX) / typical_deviation(tilted_KRX)
    return {
        "name": f"{run.run['experiment']} step {step}: gradient variance at equal cost, plain / tilted",
        "variance_ratio": cost * statistics.median(ratios),
        "typical_ratio": cost * float(typical_R.median()),
        "by_seed": [cost * ratio for ratio in ratios],
        "target": "above 1",
        "met": cost * statistics.median(ratios) > 1,
    }


def prompt_gradients(model: LinearTransformer, law: LinearRegressionLaw, r: int, S_BDD: Tensor) -> Tensor:
    """(B, X): the gradient of each prompt's risk at the weights of replica r, as replicas of one prompt."""
    B, family = len(S_BDD), model.parametrization
    matrices = [matrix[r : r + 1].detach() for matrix in family.matrices().values()]
    copies = [matrix.expand(B, *matrix.shape[1:]).clone().requires_grad_() for matrix in matrices]
    roots = [root[r : r + 1].expand(B, -1, -1) for root in (law.label_root_REK, law.query_root_RED)]
    each = model.on(family.sharing(copies))
    return _gradient(each.risk_of_contexts(S_BDD[..., None], *roots, read_out=law.read_out), copies)


def batch_gradients(
    run: TrainedRun, model: LinearTransformer, estimator: str, batches: int
) -> tuple[Tensor, float]:
    """Return gradient_KRX of `count` batches of BATCH prompts, and the median seconds of one."""
    model.requires_grad_(True)
    made, gradients, seconds = make_estimator(estimator, model, run.law), [], []
    for batch in range(batches):
        streams = [generator(seed, "eval", batch) for seed in run.run["seeds"]]  # S is drawn first
        begun = time.perf_counter()
        risk_R = made.risk(model, made.draw(streams, BATCH))
        gradients.append(_gradient(risk_R, list(model.parametrization.parameters())))
        seconds.append(time.perf_counter() - begun)
    return torch.stack(gradients), statistics.median(seconds)


def typical_deviation(gradient_KRX: Tensor) -> Tensor:
    """Return the median squared deviation from the median."""
    return (gradient_KRX - gradient_KRX.median(0).values).square().sum(-1).median(0).values


def _gradient(risk_R: Tensor, parameters: list[Tensor]) -> Tensor:
    """(R, all entries)."""
    grads = torch.autograd.grad(risk_R.sum(), parameters)
    return torch.cat([grad.flatten(1) for grad in grads], dim=1)
