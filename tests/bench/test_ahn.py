from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import torch

from icl.bench.ahn import prompt_gradients, variance_ratios
from icl.models import LinearTransformer, SparseA, SparseAB
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


def test_gradients_of_single_prompts_have_the_batchs_mean() -> None:
    law = LinearRegression(dim=3, context=8, task_covariance="inverse").law(SEEDS)
    family = SparseAB(3, 2, init_std=0.3)
    family.initialise(SEEDS)
    model = LinearTransformer(family)
    S_RBDD = law.covariate_grams([np.random.default_rng(seed) for seed in SEEDS], 6)
    roots = law.label_root_REK, law.query_root_RED
    risk_RB = model.risk_of_contexts(S_RBDD.movedim(1, -1), *roots, read_out=law.read_out)
    grads = torch.autograd.grad(risk_RB.mean(1).sum(), list(family.parameters()))
    for r in range(2):
        gradient_BX = prompt_gradients(model, law, r, S_RBDD[r])
        wanted_X = torch.cat([grad[r].flatten() for grad in grads])
        torch.testing.assert_close(gradient_BX.mean(0), wanted_X, rtol=1e-10, atol=1e-12)
