"""`icl bench bench=paper`: what the training of giannou's figures takes at scale=paper, from single steps.

CPU seconds of a step are the difference of a short training and a longer one, at the least and the greatest
depth of the figure, and grow linearly between. A step is one of full size: the curriculum, whose first steps
are cheaper, is left out. Of what multiplies matrices with torch alone the operations are counted, too, which
says what a GPU would need at least.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.flop_counter import FlopCounterMode

from icl.config import allowed_packages
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs.requests import train

FEW, MORE = 2, 5  # steps
FLOPS = 1e13  # of a GPU in a second, in single precision
WATCHERS = tuple(f"callbacks.{name}.count=0" for name in ("gradient", "exact_risk", "heatmaps"))
LEAST = ("logger=none", "train.log_every=1000", *WATCHERS)
FULL = "callbacks.curriculum.every=null"  # at once


@dataclass(frozen=True)
class Plan:
    """The runs of one experiment that a figure asks for: of every depth that its setting `depths` lists."""

    name: str
    experiment: str
    figure: str
    depths: str = "layers"
    steps: str = "steps"
    copies: int = 1
    settings: tuple[str, ...] = (FULL,)
    counted: bool = True


PLANS = (
    Plan("LSA in Gram form, with and without a mask", "giannou/lsa", "giannou/fig2", copies=2, counted=False),
    Plan("LSA with LayerNorm", "giannou/lsa_ln", "giannou/fig2", "layernorm_layers", "layernorm_steps"),
    Plan("logistic regression", "giannou/logistic", "giannou/fig1", settings=()),
)


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    with allowed_packages.frozen_allowlist(allowed_packages.allowed()):
        for plan in PLANS:
            yield estimated(plan, repeats, "paper")


def estimated(plan: Plan, repeats: int, scale: str) -> dict[str, Any]:
    figure = _settings("figure", f"figure={plan.figure}", scale)["figure"]["experiment"]
    own = _settings("train", f"experiment={plan.experiment}", scale)["train"]
    steps = figure.get(plan.steps) or own["steps"]
    depths, seeds = figure[plan.depths], len(figure["seeds"])
    ends = sorted({min(depths), max(depths)})
    _train(plan, scale, ends[0], FEW)  # what a process does once
    cpu = [statistics.median(_cpu(plan, scale, L) for _ in range(repeats)) for L in ends]
    flop = [_flop(plan, scale, L) for L in ends] if plan.counted else None
    runs = plan.copies * seeds * steps
    return {
        "name": f"{plan.figure}: {plan.name}",
        "depths": list(depths),
        "step_cpu_seconds": dict(zip(map(str, ends), cpu, strict=True)),
        "step_flop": flop and dict(zip(map(str, ends), flop, strict=True)),
        "steps": steps,
        "runs": plan.copies * seeds * len(depths),
        "core_hours": runs * _over(depths, ends, cpu) / 3600,
        "gpu_hours": flop and runs * _over(depths, ends, flop) / FLOPS / 3600,
        "target": "",
        "met": True,
    }


def _settings(verb: str, overrides: str, scale: str) -> dict[str, Any]:
    return dict(compose(ConfigDirs(), verb, [overrides, f"scale={scale}"]).settings)


def _over(depths: Sequence[int], ends: Sequence[int], values: Sequence[float]) -> float:
    """Return the sum over all depths."""
    return float(np.interp(depths, ends, values).sum())


def _cpu(plan: Plan, scale: str, layers: int) -> float:
    """Seconds of all threads for a step of one seed."""
    taken = []
    for steps in (FEW, MORE):
        started = time.process_time()
        _train(plan, scale, layers, steps)
        taken.append(time.process_time() - started)
    return (taken[1] - taken[0]) / (MORE - FEW)


def _flop(plan: Plan, scale: str, layers: int) -> float:
    """Additions and multiplications of a step's matrix products, forth and back."""
    counted = []
    for steps in (FEW, MORE):
        with FlopCounterMode(display=False) as counter:
            _train(plan, scale, layers, steps)
        counted.append(counter.get_total_flops())
    return (counted[1] - counted[0]) / (MORE - FEW)


def _train(plan: Plan, scale: str, layers: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        overrides = (f"experiment={plan.experiment}", f"scale={scale}", f"model.layers={layers}", "seeds=[0]")
        schedule = ("optimizer.schedule.warmup=1", f"optimizer.schedule.decay={steps - 1}")
        given = (*LEAST, *plan.settings)
        where = f"paths.outputs={folder}"
        composed = compose(
            ConfigDirs(), "train", [*overrides, f"train.steps={steps}", *schedule, *given, where]
        )
        session = Session(Path(folder))
        train.parse(composed, session).run(session)
