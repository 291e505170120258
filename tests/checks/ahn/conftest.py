"""For tests of the algebra: the sampled evidence, which has tests of its own, agrees with everything."""

import pytest
import torch

from icl.checks.ahn.support import linear_layer_tokens, token_stacks, two_layers
from icl.checks.token_evidence import hold_to


@pytest.fixture
def no_tokens(monkeypatch):
    agreed = hold_to(lambda batch: [torch.ones(batch, dtype=torch.float64)], [1.0], 1, most=10)
    for module, name in (
        (token_stacks, "hold"),
        (linear_layer_tokens, "hold_eq_8"),
        (linear_layer_tokens, "hold_to"),
        (two_layers, "hold_eq_8"),
    ):
        monkeypatch.setattr(module, name, lambda *_: agreed)
