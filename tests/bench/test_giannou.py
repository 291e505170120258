"""Tests that `icl bench bench=giannou` compares equal computations."""

import torch

from icl.bench.giannou import published
from icl.models import LSA
from icl.random import generator
from icl.tasks import ConditionedRegression


def test_both_forms_predict_the_same() -> None:
    family = LSA(3, 2, 2, 9, 4, init_std=0.3)
    family.initialise([0, 1])
    law = ConditionedRegression(3, 6, constant=True, largest=(1.0, 1.0)).law([0, 1])
    prompt = law.token_prompts([generator(seed, "eval") for seed in (0, 1)], 4)
    z_RBMP = torch.cat([prompt.context_RBNP, prompt.query_RBP[:, :, None]], dim=2)
    by_tokens = published(family, z_RBMP, 6)
    by_gram = (family.row(prompt.gram().with_query().gram_RBPP) * prompt.query_RBP).sum(-1)
    assert (by_tokens - by_gram).abs().max() < 1e-12 * by_tokens.abs().max()
