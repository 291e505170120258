"""`icl bench bench=xie`: checks and laptop figures from nothing, the convex bound at d = 20, and a gradient
of the exact population risk against one of sampled prompts."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from icl.bench.command import run_icl
from icl.bench.gradients import sampled_over_exact
from icl.models import MultiHead
from icl.tasks import LinearRegression
from icl.theory.quadratic import QuadraticRisk

CHECKS_SECONDS, SMOKE_SECONDS, FIGURES_SECONDS, FIGURES_MB = 60, 15, 180, 4096
FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5")  # fig6 needs language models
BOUND_DIM, BOUND_SECONDS, BOUND_MB = 20, 60, 4096
DIM, CONTEXT, HEADS, BATCH, SEEDS = 10, 10, 11, 2048, (0, 1, 2)


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    yield bound()
    yield steps(repeats)
    with tempfile.TemporaryDirectory() as folder:
        outputs = f"paths.outputs={folder}"
        yield run_icl("check", "check=xie/all", "scale=smoke", outputs).row(
            "all checks at smoke", SMOKE_SECONDS
        )
    with tempfile.TemporaryDirectory() as folder:
        outputs = f"paths.outputs={folder}"
        yield run_icl("check", "check=xie/all", outputs).row("all checks at d = C = 10", CHECKS_SECONDS)
        seconds, peak, code = 0.0, 0.0, 0
        for name in FIGURES:
            ran = run_icl("figure", f"figure=xie/{name}", outputs)
            seconds, peak, code = seconds + ran.seconds, max(peak, ran.peak_mb), max(code, ran.code)
            yield ran.row(f"xie/{name} at laptop", FIGURES_SECONDS, FIGURES_MB)
    yield {
        "name": f"Figures 1 to 5 together, worst exit code {code}",
        "seconds": seconds,
        "peak_mb": peak,
        "target": f"exit code 0 in {FIGURES_SECONDS} s and {FIGURES_MB} MB",
        "met": code == 0 and seconds < FIGURES_SECONDS and peak < FIGURES_MB,
    }


def bound() -> dict[str, Any]:
    """Compute the least risk over any number of heads at d = 20, with a prior mean and a biased guess."""
    law = _law(BOUND_DIM, [0], guess_vector_norm=1.0, guess_bias=1.0)
    started = time.perf_counter()
    QuadraticRisk.linear_regression(**law.risk_arguments()).convex_bound()
    seconds = time.perf_counter() - started
    unit = 1 << 10 if sys.platform != "darwin" else 1 << 20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {
        "name": f"convex bound at d = {BOUND_DIM}",
        "seconds": seconds,
        "peak_mb": peak,
        "target": f"{BOUND_SECONDS} s and {BOUND_MB} MB",
        "met": seconds < BOUND_SECONDS and peak < BOUND_MB,
    }


def steps(repeats: int) -> dict[str, Any]:
    """Time a gradient of the sampled loss, on fresh prompts as in the paper, over one of the exact risk."""
    law, family = _law(DIM, SEEDS), MultiHead(DIM, 1, HEADS, 0.1)
    name = f"one gradient at d = {DIM}, {HEADS} heads"
    return asdict(sampled_over_exact(name, family, law, SEEDS, BATCH, repeats, at_least=5))


def _law(dim: int, seeds: Sequence[int], **guess: Any) -> Any:
    task = LinearRegression(dim, CONTEXT, rotation="none", prior_mean_norm=dim**0.5, read_out=1, **guess)
    return task.law(list(seeds))
