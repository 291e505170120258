"""The Gram path against the token path, sparse kernels against dense, expected risks against exact ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.errors import InputError
from icl.models import (
    Full,
    LinearTransformer,
    LinearTransformerBlock,
    MultiHead,
    SparseA,
    SparseAB,
    YqLSA,
    gram,
)
from icl.models.batched import batch_last
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.quadratic import QuadraticRisk

SIGMAS = 5.0


FAMILIES = [
    Full,
    SparseA,
    SparseAB,
    YqLSA,
    lambda dim, layers, std: MultiHead(dim, layers, 1, std),
    lambda dim, layers, std: MultiHead(dim, layers, 3, std),
    lambda dim, layers, std: LinearTransformerBlock(dim, layers, 2, std),
]


def streams(seeds, step=0):
    return [generator(seed, "check", step) for seed in seeds]


@pytest.mark.parametrize("make", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(
    dim=st.integers(1, 4),
    layers=st.integers(1, 4),
    context=st.integers(1, 9),
    read_out=st.sampled_from([-1, 1]),
    guesses=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_gram_and_token_paths_agree(make, dim, layers, context, read_out, guesses, seed):
    guess = {"guess_vector_norm": 0.7, "guess_bias": -0.4} if guesses else {}
    law = LinearRegression(dim, context, label_noise=0.2, read_out=read_out, **guess).law([seed, seed + 1])
    family = make(dim, layers, 0.3)
    family.initialise([seed, seed + 1])
    prompt = law.token_prompts(streams([seed, seed + 1]), 3)
    over_tokens = LinearTransformer(family, "tokens").predict(prompt)
    over_gram = LinearTransformer(family, "gram").predict(prompt.gram())
    # Relative to the largest intermediate: predictions may cancel against one another, layers cannot.
    scale = over_tokens.abs().max() + prompt.gram().gram_RBPP.abs().max()
    assert ((over_tokens - over_gram).abs() <= 1e-12 * scale).all()
    if family.sparse:
        queries = batch_last(prompt.gram().gram_RBPP), batch_last(prompt.query_RBP)[:, :, None]
        dense = gram.stack_output(*family.stack(), *queries)
        assert ((read_out * dense[:, 0] - over_gram).abs() <= 1e-12 * scale).all()


RISKS = {
    "plain": {"dim": 3, "context": 6, "eigenvalues": [1.0, 0.5, 0.25]},
    "inverse": {"dim": 3, "context": 6, "eigenvalues": [1.0, 0.5, 0.25], "task_covariance": "inverse"},
    "noise": {"dim": 2, "context": 4, "label_noise": 0.5},
    "mean": {"dim": 2, "context": 4, "prior_mean": [1.0, -0.5]},
    "noise, mean, few tokens": {"dim": 3, "context": 2, "label_noise": 0.3, "prior_mean": [1.0, -0.5, 0.2]},
}


@pytest.mark.parametrize("name", RISKS)
def test_expected_risk_has_the_exact_mean_of_one_layer(name):
    law = LinearRegression(**RISKS[name]).law([0])
    exact = QuadraticRisk.linear_regression(
        law.Sigma_RDD[0],
        law.Sigma_w_RDD[0],
        law.context_R[0],
        prior_mean=law.mean_RD[0],
        label_noise=law.label_noise,
    )
    S = batch_last(law.covariate_grams(streams([0]), 40_000))
    G, w = (batch_last(t) for t in law.gram_tasks(streams([0], 1), 40_000))
    for family in (SparseA(law.dim, 1, 0.3), SparseAB(law.dim, 1, 0.3), Full(law.dim, 1, 0.3)):
        family.initialise([0])
        P, Q = family.stack()
        value = exact.value_of_layer(P[0, 0], Q[0, 0])
        found = [gram.stack_expected_risk(P, Q, G, w, law.query_token_root_RPK, -1)]
        if family.sparse:
            weights = family.sparse_weights()
            found.append(gram.sparse_expected_risk(*weights, S, law.label_root_REK, law.query_root_RED))
        for risk_RB in found:
            stderr = risk_RB.std() / risk_RB.shape[1] ** 0.5
            assert (risk_RB.mean() - value).abs() < SIGMAS * stderr and stderr < 0.05 * value


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("read_out", [-1, 1])
@pytest.mark.parametrize("make", [SparseA, SparseAB])
def test_expected_risk_prompt_by_prompt(make, read_out, layers, noise):
    """For each S the expectation is a finite sum over columns of the roots of w and x_q: no sampling."""
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
        given = G, v_RE[:, :2, None].expand(-1, -1, 6), law.query_token_root_RPK
        by_stack = by_stack + gram.stack_expected_risk(*family.stack(), *given, read_out)
        for x_RE in law.query_root_RED.unbind(-1):
            query = torch.nn.functional.pad(x_RE[:, :2], (0, 1))[:, :, None].expand(-1, -1, 6)
            last = gram.stack_output(*family.stack(), G, query[:, :, None])[:, 0]
            total = total + (read_out * last - (v_RE * x_RE).sum(-1)[:, None]).square()
    assert torch.allclose(expected, total, rtol=1e-12)
    assert torch.allclose(by_stack, total, rtol=1e-12)


def test_gradients_of_both_expected_risks():
    law = LinearRegression(dim=2, context=3, label_noise=0.1).law([0])
    S = batch_last(law.covariate_grams(streams([0]), 3))
    G, w = (batch_last(t) for t in law.gram_tasks(streams([0], 1), 3))
    for layers in (1, 2, 3):
        A, B = torch.randn(1, layers, 2, 2).double(), torch.randn(1, max(layers - 1, 1), 2, 2).double()
        A.requires_grad_(), B.requires_grad_()
        roots = law.label_root_REK, law.query_root_RED
        assert torch.autograd.gradcheck(lambda A: gram.sparse_expected_risk(A, None, S, *roots), (A,))  # noqa: B023
        if layers > 1:
            assert torch.autograd.gradcheck(lambda A, B: gram.sparse_expected_risk(A, B, S, *roots), (A, B))  # noqa: B023
    P, Q = (torch.randn(1, 2, 2, 3, 3).double().requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda P, Q: gram.stack_expected_risk(P, Q, G, w, law.query_token_root_RPK, -1), (P, Q)
    )


@pytest.mark.parametrize("activation", ["relu", "softmax"])
def test_other_activations_have_no_gram_form(activation):
    family = SparseA(2, 1)
    with pytest.raises(
        InputError, match=f"model.activation={activation} has no Gram form: set model.path=tokens"
    ):
        LinearTransformer(family, "gram", activation)
    family.initialise([0])
    prompt = LinearRegression(dim=2).law([0]).gram_prompts(streams([0]), 2)
    with pytest.raises(ValueError, match="needs token prompts"):
        LinearTransformer(family, "tokens", activation).predict(prompt)
