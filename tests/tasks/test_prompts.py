import dataclasses

import pytest
import torch
from torch import zeros

from icl.tasks import GramPrompt, TokenPrompt

R, B, N, P = 2, 3, 4, 5


def parts(**context):
    return context | {"query_RBP": torch.randn(R, B, P), "target_RB": torch.ones(R, B)}


def tokens(**changes):
    return TokenPrompt(**(parts(context_RBNP=torch.randn(R, B, N, P)) | changes))


def gram(**changes):
    return GramPrompt(**(parts(gram_RBPP=zeros(R, B, P, P)) | changes))


def test_prompts_are_frozen_and_moving_makes_a_new_one():
    prompt = tokens(read_out=1)
    double = prompt.to(torch.float64)
    assert prompt.target_RB.dtype == torch.float32 and double.target_RB.dtype == torch.float64
    assert double.context_RBNP.dtype == torch.float64 and double.read_out == 1
    for frozen in (prompt, prompt.gram()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            frozen.read_out = -1


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (tokens, {"context_RBNP": zeros(B, N, P)}, r"context_RBNP has 3 axes, must have 4"),
        (tokens, {"context_RBNP": zeros(R, B, 0, P)}, "no context tokens"),
        (tokens, {"query_RBP": zeros(R, B, 6)}, r"query_RBP has shape \(2, 3, 6\), must have \(2, 3, 5\)"),
        (tokens, {"target_RB": zeros(R)}, r"target_RB has shape \(2,\), must have \(2, 3\)"),
        (tokens, {"read_out": 0}, "read_out=0: must be -1 or 1"),
        (gram, {"gram_RBPP": zeros(R, B, P)}, "gram_RBPP has 3 axes"),
        (gram, {"gram_RBPP": zeros(R, B, P, P + 1)}, "gram_RBPP has shape"),
        (gram, {"query_RBP": zeros(R, B, 1)}, "query_RBP has shape"),
        (gram, {"target_RB": zeros(B, R)}, "target_RB has shape"),
        (gram, {"read_out": 2}, "read_out=2"),
    ],
)
def test_prompts_check_shapes(make, changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)
