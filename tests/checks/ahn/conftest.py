"""Fixtures of the algebra's tests: the sampled evidence, which has tests of its own, agrees with
everything.
"""

import pytest
import torch

from icl.checks.ahn import theorem4
from icl.checks.ahn.support import batch_loss, linear_layer_tokens, softmax_heads, token_stacks, two_layers
from icl.checks.token_evidence import compare_with_samples


@pytest.fixture
def no_tokens(monkeypatch):
    agreed = compare_with_samples(lambda batch: [torch.ones(batch, dtype=torch.float64)], [1.0], 1, most=10)
    for module, name in (
        (token_stacks, "hold"),
        (linear_layer_tokens, "compare_eq_8"),
        (linear_layer_tokens, "compare_with_samples"),
        (two_layers, "compare_eq_8"),
    ):
        monkeypatch.setattr(module, name, lambda *_: agreed)


@pytest.fixture
def fewer_prompts(monkeypatch):
    """Draw few prompts; test_token_stacks.py and tests/test_smoke.py draw the check's own number."""
    monkeypatch.setattr(token_stacks, "BUDGET", 20_000_000)


@pytest.fixture
def few_steps(monkeypatch, fewer_prompts):
    """Shorten the search on the batch loss, on which no verdict rests, and tokens, which have tests of
    their own."""
    monkeypatch.setattr(batch_loss, "SEARCH_STEPS", 3)
    monkeypatch.setattr(theorem4, "BATCH", 2000)


@pytest.fixture
def short_searches(monkeypatch):
    """Shorten the search for softmax heads, where the verdict rests on the bound of all heads."""
    monkeypatch.setattr(softmax_heads, "ITERATIONS", 20)
