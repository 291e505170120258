"""`icl bench bench=lds`: a step of the paper's protocol, Theorem 4.1, all checks and the laptop figures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from icl.bench.command import run_icl
from icl.bench.gradients import sampled_over_exact
from icl.kernel import library
from icl.models import Full
from icl.tasks import DynamicalSystem

THEOREM_SECONDS, CHECKS_SECONDS, SMOKE_SECONDS, FIGURES_SECONDS = 2, 90, 15, 240
BATCH, SEEDS = 3000, (0, 1, 2)
STEP_MS = {"kernel": 12, "torch": 30}


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    yield step(repeats)
    with tempfile.TemporaryDirectory() as folder:
        outputs = f"paths.outputs={folder}"
        ran = run_icl(
            "check", "check=lds/theorem4_1", "check.setting=a", "check.dim=5", "check.length=30", outputs
        )
        seconds = float(ran.document.get("seconds", "nan"))
        target = f"holds in {THEOREM_SECONDS} s, start-up apart"
        met = ran.code == 0 and seconds < THEOREM_SECONDS
        yield {"name": "Theorem 4.1 in setting (a)", "seconds": seconds, "target": target, "met": met}
        smoke = run_icl("check", "check=lds/all", "scale=smoke", outputs)
        yield smoke.row("all checks at smoke", SMOKE_SECONDS)
        yield run_icl("check", "check=lds/all", "force=true", outputs).row("all checks", CHECKS_SECONDS)
        yield run_icl("figure", "figure=lds/all", outputs).row("all figures at laptop", FIGURES_SECONDS)


def step(repeats: int) -> dict[str, Any]:
    """Time a gradient of AR(1) as the paper takes it, on fresh sequences, over one of the exact risk."""
    law = DynamicalSystem(setting="a", window=1).law(SEEDS)
    family = Full(law.dim, 1, init_std=0.1)
    name = "one AR(1) step in setting (a)"
    comparison = sampled_over_exact(name, family, law, SEEDS, BATCH, repeats)
    by = "torch" if library.why_none() else "kernel"
    target = f"batch {BATCH}, {by}, under {STEP_MS[by]} ms"
    return asdict(comparison) | {"target": target, "met": comparison.first_ms < STEP_MS[by]}
