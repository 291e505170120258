"""The Gram path against the token path, sparse kernels against dense, expected against sampled risks."""

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


def family_of(name, dim, layers, heads, std=0.3):
    made = {
        "full": Full(dim, layers, std),
        "multihead": MultiHead(dim, layers, heads, std),
        "sparse_a": SparseA(dim, layers, std),
        "sparse_ab": SparseAB(dim, layers, std),
        "yq_lsa": YqLSA(dim, layers, std),
        "ltb": LinearTransformerBlock(dim, layers, 2, std),
    }
    return made[name]


def streams(seeds, step=0):
    return [generator(seed, "check", step) for seed in seeds]


families = st.sampled_from(["full", "multihead", "sparse_a", "sparse_ab", "yq_lsa", "ltb"])


@settings(max_examples=40, deadline=None)
@given(
    name=families,
    dim=st.integers(1, 4),
    layers=st.integers(1, 4),
    heads=st.integers(1, 3),
    context=st.integers(1, 9),
    read_out=st.sampled_from([-1, 1]),
    guesses=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_gram_and_token_paths_agree(name, dim, layers, heads, context, read_out, guesses, seed):
    guess = {"guess_vector_norm": 0.7, "guess_bias": -0.4} if guesses else {}
    law = LinearRegression(dim, context, label_noise=0.2, read_out=read_out, **guess).law([seed, seed + 1])
    family = family_of(name, dim, layers, heads)
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


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_sparse_kernels_are_the_stack(layers):
    """Both with and without B; also a B of zeros against no B."""
    law = LinearRegression(dim=3, context=5).law([0, 1])
    prompt = law.gram_prompts(streams([0, 1]), 20)
    G, q = batch_last(prompt.gram_RBPP), batch_last(prompt.query_RBP)
    for family in (SparseA(3, layers, 0.4), SparseAB(3, layers, 0.4)):
        family.initialise([0, 1])
        dense = gram.stack_output(*family.stack(), G, q[:, :, None])[:, 0]
        sparse = gram.sparse_forward(*family.sparse_weights(), G, q)
        assert torch.allclose(sparse, dense, rtol=1e-12, atol=1e-12)
    A, _ = family.sparse_weights()
    if layers > 1:
        none = gram.sparse_forward(A, None, G, q)
        zero = gram.sparse_forward(A, torch.zeros(2, layers - 1, 3, 3).double(), G, q)
        assert torch.allclose(none, zero, rtol=1e-13)


RISKS = {
    "plain": {"dim": 3, "context": 6, "eigenvalues": [1.0, 0.5, 0.25]},
    "inverse": {"dim": 3, "context": 6, "eigenvalues": [1.0, 0.5, 0.25], "task_covariance": "inverse"},
    "noise": {"dim": 2, "context": 4, "label_noise": 0.5},
    "mean": {"dim": 2, "context": 4, "prior_mean": [1.0, -0.5]},
    "noise, mean, few tokens": {"dim": 3, "context": 2, "label_noise": 0.3, "prior_mean": [1.0, -0.5, 0.2]},
}


def sampled(model, law, seeds, batch):
    prompt = law.gram_prompts(streams(seeds), batch)
    return (model.predict(prompt) - prompt.target_RB).square()


def assert_same_mean(one_RB, other_RB):
    gap = (one_RB.mean(-1) - other_RB.mean(-1)).abs()
    stderr = (one_RB.var(-1) / one_RB.shape[-1] + other_RB.var(-1) / other_RB.shape[-1]).sqrt()
    assert (gap <= SIGMAS * stderr).all(), (gap / stderr).tolist()
    assert (stderr < 0.05 * one_RB.mean(-1)).all(), "too noisy to tell"


@pytest.mark.parametrize(("name", "read_out"), [*zip(RISKS, [-1, 1, 1, -1, 1], strict=True)])
@pytest.mark.parametrize("family", ["sparse_a", "sparse_ab", "multihead"])
def test_expected_risks_are_means_of_sampled_ones(family, name, read_out):
    """|z| < 5 for the difference of two independent means, each known to 5 %."""
    law = LinearRegression(**RISKS[name], read_out=read_out).law([0, 1])
    made = (
        family_of(family, law.dim, 2, 2, 0.06)
        if family == "multihead"
        else family_of(family, law.dim, 3, 1, 0.15)
    )
    made.initialise([0, 1])
    model = LinearTransformer(made)
    sampled_RB = sampled(model, law, [0, 1], 60_000)
    later = streams([0, 1], step=1)
    if made.sparse:
        S = batch_last(law.covariate_grams(later, 20_000))
        roots = law.label_root_REK, law.query_root_RED
        expected_RB = gram.sparse_expected_risk(*made.sparse_weights(), S, *roots, law.read_out)
    else:
        G, w = law.gram_tasks(later, 20_000)
        expected_RB = gram.stack_expected_risk(
            *made.stack(), batch_last(G), batch_last(w), law.query_token_root_RPK, read_out
        )
    assert_same_mean(sampled_RB, expected_RB)


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
def test_expected_risk_prompt_by_prompt(layers, noise):
    """For each S the expectation is a finite sum over columns of the roots of w and x_q: no sampling."""
    law = LinearRegression(dim=2, context=3, label_noise=noise, prior_mean=[0.5, 1.0]).law([0, 1])
    family = SparseAB(2, layers, 0.5)
    family.initialise([0, 1])
    S_RBEE = law.covariate_grams(streams([0, 1]), 6)
    expected = gram.sparse_expected_risk(
        *family.sparse_weights(), batch_last(S_RBEE), law.label_root_REK, law.query_root_RED
    )
    total = torch.zeros_like(expected)
    for v_RE in law.label_root_REK.unbind(-1):  # u -> z = (x, y): y = <v, u>, linear in v
        J = torch.zeros(2, 3, S_RBEE.shape[-1]).double()
        J[:, :2, :2], J[:, 2] = torch.eye(2), v_RE
        G = J[:, None] @ S_RBEE @ J[:, None].mT
        for x_RE in law.query_root_RED.unbind(-1):
            query = torch.nn.functional.pad(x_RE[:, :2], (0, 1))[:, :, None].expand(-1, -1, 6)
            last = gram.stack_output(*family.stack(), batch_last(G), query[:, :, None])[:, 0]
            total = total + (last + (v_RE * x_RE).sum(-1)[:, None]).square()
    assert torch.allclose(expected, total, rtol=1e-12)


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
