"""Tests of sparse kernels against dense ones prompt by prompt, and of what has no Gram form."""

import pytest
import torch

from icl.errors import InputError
from icl.models import LinearTransformer, SparseA, SparseAB, gram
from icl.models.batched import batch_last
from icl.tasks import LinearRegression
from tests.streams import streams


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("read_out", [-1, 1])
@pytest.mark.parametrize("make", [SparseA, SparseAB])
def test_expected_risk_prompt_by_prompt(make, read_out, layers, noise):
    """Sum, for each S, over columns of the roots of w and x_q: the expectation is finite, no sampling."""
    given = {"covariance": [[2.0, 0.5], [0.5, 1.0]], "label_noise": noise, "prior_mean": [0.5, 1.0]}
    law = LinearRegression(dim=2, context=3, read_out=read_out, **given).law([0, 1])
    family = make(2, layers, 0.5)
    family.initialise([0, 1])
    S_RBEE = law.covariate_grams(streams([0, 1]), 6)
    roots = law.label_root_REK, law.query_root_RED
    expected = gram.sparse_expected_risk(*family.sparse_weights(), batch_last(S_RBEE), *roots, read_out)
    total, by_stack = torch.zeros_like(expected), torch.zeros_like(expected)
    for v_RE in law.label_root_REK.unbind(-1):  # u -> z = (x, y): y = <v, u>, linear in v
        J = torch.zeros(2, 3, S_RBEE.shape[-1]).double()
        J[:, :2, :2], J[:, 2] = torch.eye(2), v_RE
        G = batch_last(J[:, None] @ S_RBEE @ J[:, None].mT)
        w, root = v_RE[:, :2, None].expand(-1, -1, 6), law.query_token_root_RPK
        out = gram.stack_output(*family.stack(), G, root[..., None].expand(-1, -1, -1, 6))
        by_stack = by_stack + gram.query_risk(out, w, root, read_out)
        for x_RE in law.query_root_RED.unbind(-1):
            query = torch.nn.functional.pad(x_RE[:, :2], (0, 1))[:, :, None].expand(-1, -1, 6)
            last = gram.stack_output(*family.stack(), G, query[:, :, None])[:, 0]
            total = total + (read_out * last - (v_RE * x_RE).sum(-1)[:, None]).square()
    assert torch.allclose(expected, total, rtol=1e-12)
    assert torch.allclose(by_stack, total, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "softmax"])
def test_other_activations_have_no_gram_form(activation):
    family = SparseA(2, 1)
    refused = f"model.activation={activation} has no Gram form: set model.path=tokens"
    with pytest.raises(InputError, match=refused):
        LinearTransformer(family, "gram", activation)
    family.initialise([0])
    prompt = LinearRegression(dim=2).law([0]).gram_prompts(streams([0]), 2)
    with pytest.raises(ValueError, match="needs token prompts"):
        LinearTransformer(family, "tokens", activation).predict(prompt)
