from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from icl.bench.ahn import variance_ratios
from icl.tasks import LinearRegression

SEEDS = [0, 1]


def test_integrating_task_and_query_out_takes_variance_away() -> None:
    law = LinearRegression(dim=3, context=8, task_covariance="inverse").law(SEEDS)
    rng = np.random.default_rng(0)
    history = 0.05 * rng.standard_normal((2, 3, 2, 3, 3))
    run = SimpleNamespace(
        run={"experiment": "ahn/test", "seeds": SEEDS},
        Sigma=law.Sigma_RDD.numpy(),
        U=law.U_RDD.numpy(),
        weights={
            "A": history[:, -1],
            "A_history": history,
            "history_steps": np.array([0, 5, 10]),
            "Sigma_w": law.Sigma_w_RDD.numpy(),
            "context": np.array(law.context_R),
        },
    )
    rows = list(variance_ratios(run, batches=12))  # type: ignore[arg-type]
    assert [row["name"].split(":")[0] for row in rows] == [f"ahn/test step {s}" for s in (0, 5, 10)]
    assert all(row["met"] and min(row["by_seed"]) > 2 and row["typical_ratio"] > 2 for row in rows)
