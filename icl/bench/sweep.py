"""A sweep as one program against one job after another, what a job costs by itself and what its W&B run adds,
and how fast a sweep that is done is known to be.

Jobs of the basic launcher do not know of each other, so that some of them tell how long all would take.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from icl.bench.command import run_icl

SEEDS, RATES = 8, "0.005,0.01,0.015,0.02,0.03,0.04,0.05,0.06"
ALL = 64
SOME = 4  # jobs of the basic launcher that are timed, after a first one that loads what all need
FIXED_VECTORIZED, FIXED_BASIC, LOGGED = 0.1, 0.5, 0.5  # seconds
DONE, DONE_SECONDS = 1000, 60.0
SETTINGS = ((500, 2000, 2.5), (50, 10_000, 6.0))  # batch, steps, how many times as fast


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Once, however many repeats: each takes minutes."""
    for batch, steps, least in SETTINGS:
        yield _against_basic(batch, steps, least)
    yield from _fixed_costs()
    yield _known_to_be_done()


def _seconds(folder: str, *args: str) -> float:
    """Return the seconds of a multirun, from the parsed command to its table."""
    ran = run_icl("train", "-m", "experiment=ahn/theorem3", "checks=[]", f"paths.outputs={folder}", *args)
    if ran.code != 0:
        raise RuntimeError(f"icl train -m {' '.join(args)}: exit code {ran.code}")
    return float(ran.document["seconds"])


def _of_basic(*settings: str) -> tuple[float, float]:
    """Seconds of a first job with all that is loaded for it, and of each that comes after."""
    with tempfile.TemporaryDirectory() as folder:
        first = _seconds(folder, "seed=0", "optimizer.lr=0.02", *settings)
        more = _seconds(folder, f"seed=range(1,{SOME + 2})", "optimizer.lr=0.02", *settings)
    return first, (more - first) / SOME


def _of_vectorized(*settings: str) -> float:
    swept = [f"seed=range({SEEDS})", f"optimizer.lr={RATES}", "hydra/launcher=vectorized"]
    with tempfile.TemporaryDirectory() as folder:
        return _seconds(folder, *swept, *settings)


def _against_basic(batch: int, steps: int, least: float) -> dict[str, Any]:
    settings = (f"train.batch={batch}", f"train.steps={steps}")
    first, each = _of_basic(*settings)
    basic, vectorized = first + (ALL - 1) * each, _of_vectorized(*settings)
    return {
        "name": f"{ALL} jobs, batch {batch}, {steps} steps",
        "times": basic / vectorized,
        "basic_seconds": basic,
        "vectorized_seconds": vectorized,
        "target": f"at least {least:g}",
        "met": basic / vectorized >= least,
    }


def _fixed_costs() -> Iterator[dict[str, Any]]:
    """Measure jobs of a single step, whose cost is what surrounds it."""
    settings = ("train.batch=1", "train.steps=1", "callbacks.gradient.count=0")
    with tempfile.TemporaryDirectory() as folder:
        one = _seconds(folder, "seed=0", "optimizer.lr=0.02", "hydra/launcher=vectorized", *settings)
    all_of_them = _of_vectorized(*settings)
    logged = _of_vectorized(*settings, "logger=wandb", "logger.mode=offline")
    fixed = "fixed cost of a job after the first"
    costs = {
        f"{fixed}, vectorized": ((all_of_them - one) / (ALL - 1), FIXED_VECTORIZED),
        f"{fixed}, basic": (_of_basic(*settings)[1], FIXED_BASIC),
        "a job's W&B run, offline, with its pictures": ((logged - all_of_them) / ALL, LOGGED),
    }
    for name, (seconds, most) in costs.items():
        yield {
            "name": name,
            "seconds": seconds,
            "target": f"at most {most:g} s",
            "met": seconds <= most,
        }


def _known_to_be_done() -> dict[str, Any]:
    swept = [f"seed=range({DONE})", "train.batch=1", "train.steps=1", "callbacks=none"]
    with tempfile.TemporaryDirectory() as folder:
        _seconds(folder, *swept, "hydra/launcher=vectorized")
        seconds = _seconds(folder, *swept)
    return {
        "name": f"a sweep of {DONE} jobs that are done",
        "seconds": seconds,
        "target": f"at most {DONE_SECONDS:g} s",
        "met": seconds <= DONE_SECONDS,
    }
