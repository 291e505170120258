import dataclasses

import pytest
import torch

from icl.tasks import GramPrompt, TokenPrompt

R, B, N, P = 2, 3, 4, 5


def tokens(**changes):
    parts = {
        "context_RBNP": torch.randn(R, B, N, P),
        "query_RBP": torch.randn(R, B, P),
        "target_RB": torch.ones(R, B),
    }
    return TokenPrompt(**(parts | changes))


def test_gram_is_the_mean_of_outer_products():
    prompt = tokens()
    gram = prompt.gram()
    for r in range(R):
        for b in range(B):
            by_hand = sum(torch.outer(z, z) for z in prompt.context_RBNP[r, b]) / N
            assert torch.allclose(gram.gram_RBPP[r, b], by_hand, atol=1e-6)
    assert gram.query_RBP is prompt.query_RBP and gram.read_out == prompt.read_out


def test_prompts_are_frozen():
    for prompt in (tokens(), tokens().gram()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            prompt.read_out = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context_RBNP": torch.zeros(B, N, P)}, r"context_RBNP has 3 axes, must have 4"),
        ({"context_RBNP": torch.zeros(R, B, 0, P)}, "no context tokens"),
        ({"query_RBP": torch.zeros(R, B, P + 1)}, r"query_RBP has shape \(2, 3, 6\), must have \(2, 3, 5\)"),
        ({"target_RB": torch.zeros(R)}, r"target_RB has shape \(2,\), must have \(2, 3\)"),
        ({"read_out": 0}, "read_out=0: must be -1 or 1"),
    ],
)
def test_token_prompts_check_shapes(changes, message):
    with pytest.raises(ValueError, match=message):
        tokens(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gram_RBPP": torch.zeros(R, B, P)}, "gram_RBPP has 3 axes"),
        ({"gram_RBPP": torch.zeros(R, B, P, P + 1)}, "gram_RBPP has shape"),
        ({"query_RBP": torch.zeros(R, B, 1)}, "query_RBP has shape"),
        ({"target_RB": torch.zeros(B, R)}, "target_RB has shape"),
        ({"read_out": 2}, "read_out=2"),
    ],
)
def test_gram_prompts_check_shapes(changes, message):
    parts = {
        "gram_RBPP": torch.zeros(R, B, P, P),
        "query_RBP": torch.zeros(R, B, P),
        "target_RB": torch.zeros(R, B),
    }
    with pytest.raises(ValueError, match=message):
        GramPrompt(**(parts | changes))


def test_moving_makes_a_new_prompt():
    prompt = tokens(read_out=1)
    double = prompt.to(torch.float64)
    assert prompt.target_RB.dtype == torch.float32 and double.target_RB.dtype == torch.float64
    assert double.context_RBNP.dtype == torch.float64 and double.read_out == 1
