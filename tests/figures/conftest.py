"""Finished runs with given weights, written and read through the run store."""

import numpy as np
import pytest
import torch

from icl.runs.fingerprint import fingerprint
from icl.runs.store import RunStore
from icl.tasks import LinearRegression
from tests.experiments.runners import StoringRunner

SEEDS, STEPS = [0, 1], [0, 10, 20]


@pytest.fixture
def law_of_context():
    return lambda n: LinearRegression(context=n, task_covariance="inverse").law(SEEDS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a runner whose run began at small random weights and went in a straight line to the given
    ones. What is stored of the same weights is found again by the module's other tests."""
    tmp_path = tmp_path_factory.mktemp("outputs")

    def make(law, end, name="test/run"):
        rng = np.random.default_rng(7)
        start = {k: torch.from_numpy(1e-4 * rng.standard_normal(m.shape)) for k, m in end.items()}
        parts = [s / STEPS[-1] for s in STEPS]
        history = [{k: (1 - t) * start[k] + t * end[k] for k in end} for t in parts]
        arrays = {k: m.numpy() for k, m in end.items()}
        arrays |= {f"{k}_history": torch.stack([h[k] for h in history], 1).numpy() for k in end}
        arrays |= {
            "history_steps": np.array(STEPS), "seeds": np.array(SEEDS), "context": np.array(law.context_R),
            "Sigma": law.Sigma_RDD.numpy(), "Sigma_w": law.Sigma_w_RDD.numpy(), "U": law.U_RDD.numpy(),
        }  # fmt: skip
        mark = fingerprint({k: m.tolist() for k, m in end.items()})
        task = {"_target_": "icl.tasks.LinearRegression", "context": law.context_R[0]}
        model = {"_target_": f"icl.models.Sparse{''.join(end)}", "layers": end["A"].shape[1]}
        config = {"task": task | {"task_covariance": "inverse"}, "model": model, "seeds": SEEDS}
        with RunStore(tmp_path).begin(name, mark, config, "0") as run:
            record = run.cached or run.finish(
                metrics=[], weights=arrays, summary={}, steps=STEPS[-1], seeds=SEEDS
            )
        return StoringRunner(tmp_path, record, "laptop")

    return make
