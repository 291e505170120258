from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import torch

from icl.bench.ahn import variance_ratios
from icl.models import LinearTransformer, SparseA
from icl.tasks import LinearRegression

SEEDS = [0, 1]


def test_integrating_task_and_query_out_takes_variance_away() -> None:
    law = LinearRegression(dim=3, context=8, task_covariance="inverse").law(SEEDS)
    rng = np.random.default_rng(0)
    history = 0.05 * rng.standard_normal((2, 3, 2, 3, 3))

    def stored_models() -> Iterator[tuple[int, LinearTransformer]]:
        for s, step in enumerate((0, 5, 10)):
            family = SparseA(3, 2)
            family.load({"A": torch.from_numpy(history[:, s])})
            yield step, LinearTransformer(family)

    run = SimpleNamespace(
        run={"experiment": "ahn/test", "seeds": SEEDS}, law=law, weights=["A"], stored_models=stored_models
    )
    rows = list(variance_ratios(run, batches=12))  # type: ignore[arg-type]
    assert [row["name"].split(":")[0] for row in rows] == [f"ahn/test step {s}" for s in (0, 5, 10)]
    assert all(row["met"] and min(row["by_seed"]) > 2 and row["typical_ratio"] > 2 for row in rows)
