import numpy as np
import pytest
import torch

from icl.checks import token_evidence
from icl.checks.sequential import LEAST
from icl.checks.token_evidence import (
    Tokens,
    affordable_context,
    by_tokens,
    by_tokens_of_all_tasks,
    compare_with_samples,
    draw_tokens,
    numbers_of,
    paths_error,
)
from icl.models import Full, LinearTransformer, MultiHead, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression, TokenPrompt
from icl.theory.closed_forms import theorem1_preconditioner, theorem1_risk

GUESSING = LinearRegression(
    2, 4, eigenvalues=[1, 0.3], prior_mean=[1, -2], guess_vector=[0.5, 1], guess_bias=0.7, label_noise=0.2,
    read_out=1,
).law([3])  # fmt: skip


def random_heads(layers, heads, width, seed=0):
    rng = np.random.default_rng(seed)
    return (torch.tensor(rng.standard_normal((layers, heads, width, width))) for _ in range(2))


def test_tokens_have_the_moments_of_the_law():
    tokens = draw_tokens(GUESSING, generator(0, "check"), 200_000)
    assert tokens.w_BD.mean(0).numpy() == pytest.approx([1, -2], abs=0.02)
    second_DD = (tokens.x_BND[:, 0, :, None] * tokens.x_BND[:, 0, None]).mean(0)
    np.testing.assert_allclose(second_DD, GUESSING.Sigma_RDD[0], atol=0.02)
    noise_BN = tokens.y_BN - torch.einsum("bnd,bd->bn", tokens.x_BND, tokens.w_BD)
    assert float(noise_BN.var()) == pytest.approx(0.2, rel=0.02)
    assert float((noise_BN[:, 0] * noise_BN[:, 1]).mean()) == pytest.approx(0, abs=0.002)


def test_the_mean_over_queries_is_that_of_the_library_on_many_queries():
    P_LHPP, Q_LHPP = random_heads(2, 1, 3)
    tokens = draw_tokens(GUESSING, generator(1, "check"), 1)
    family, B = Full(2, 2), 400_000
    family.load({"P": P_LHPP[None, :, 0], "Q": 0.1 * Q_LHPP[None, :, 0]})
    expected = float(by_tokens(GUESSING, P_LHPP, 0.1 * Q_LHPP, tokens))
    x_BD = torch.tensor(generator(2, "check").standard_normal((B, 2))) @ GUESSING.root_RDD[0].T
    query_BP = torch.cat([x_BD, (x_BD @ GUESSING.guess_RD[0] + 0.7)[:, None]], 1)
    context_NP = torch.cat([tokens.x_BND[0], tokens.y_BN[0][:, None]], 1)
    prompt = TokenPrompt(context_NP.expand(1, B, -1, -1), query_BP[None], torch.zeros(1, B).double(), 1)
    target_B = x_BD @ tokens.w_BD[0]
    loss_B = (LinearTransformer(family, "tokens").predict(prompt)[0].detach() - target_B).square()
    assert float(loss_B.mean()) == pytest.approx(expected, abs=5 * float(loss_B.std()) / B**0.5)


@pytest.mark.parametrize("with_b", [False, True])
def test_the_mean_over_tasks_is_the_sum_over_unit_tasks(with_b):
    law = LinearRegression(3, 5, eigenvalues=[1, 2, 0.5]).law([0])  # E w w^T = sum of e_t e_t^T
    rng = generator(0, "check")
    A_LDD, B_LDD = (torch.tensor(0.3 * rng.standard_normal((3, 3, 3))) for _ in range(2))
    x_BND = draw_tokens(law, rng, 4).x_BND
    P, Q = torch.zeros(2, 3, 1, 4, 4, dtype=torch.float64)
    P[..., -1, -1], Q[:, 0, :-1, :-1] = 1, A_LDD
    if with_b:
        P[:, 0, :-1, :-1] = B_LDD
    total_B = sum(
        by_tokens(law, P, Q, Tokens(x_BND, x_BND[..., t], torch.eye(3).double()[t].expand(4, -1)))
        for t in range(3)
    )
    found_B = by_tokens_of_all_tasks(law, A_LDD, B_LDD if with_b else None, x_BND)
    np.testing.assert_allclose(found_B, total_B, rtol=1e-10)


def eq_6_held_to_tokens(factor=1.0):
    law = LinearRegression(3, 6, eigenvalues=[1, 0.5, 2]).law([0])
    Sigma, rng = law.Sigma_RDD[0], generator(0, "check")
    A_DD = theorem1_preconditioner(Sigma, 6)

    def losses(batch):
        return [by_tokens_of_all_tasks(law, -A_DD[None], None, draw_tokens(law, rng, batch).x_BND)]

    return compare_with_samples(losses, [factor * float(theorem1_risk(Sigma, 6))], numbers_of(law), 0.002)


def test_a_formula_is_held_to_tokens_with_power_for_one_percent():
    found = eq_6_held_to_tokens()
    assert found.verdict == "holds" and float(found.sees_K) < 0.012
    assert eq_6_held_to_tokens(1.01).verdict == eq_6_held_to_tokens(0.99).verdict == "fails"


@pytest.mark.parametrize(
    "family", [SparseA(3, 1), SparseA(3, 4), SparseAB(3, 3), Full(3, 1), Full(2, 2), MultiHead(3, 1, 2)]
)
def test_both_paths_of_the_library_agree_with_attention_written_out(family):
    law = LinearRegression(family.shapes()[next(iter(family.shapes()))][-1], 6).law([0])
    if not family.sparse:
        law = LinearRegression(law.dim - 1, 6).law([0])
    error, bound = paths_error(family, law, generator(0, "check"))
    assert error < bound < 1e-11


def test_long_contexts_are_cut_to_what_can_be_afforded():
    assert affordable_context(20, 5) == affordable_context(20, 5, layers=3) == 20
    for layers in (1, 2, 6):
        context = affordable_context(10**6, 5, layers)
        law = LinearRegression(5, context).law([0])
        assert 20 < context < 2000
        assert numbers_of(law, layers) < token_evidence.BLOCK


def test_the_first_sample_is_what_the_precision_takes_within_limits(monkeypatch):
    rng = np.random.default_rng(0)

    def drawn(numbers, **limits):
        losses = lambda batch: [torch.tensor(1 + 0.1 * rng.standard_normal(batch))]  # noqa: E731
        return compare_with_samples(losses, [1.0], numbers, 0.001, **limits).samples

    assert drawn(10) == pytest.approx(10_000, rel=0.2)
    assert drawn(10, most=5000) == 5000
    assert drawn(token_evidence.NUMBERS // 4000) == 4000
    assert drawn(token_evidence.NUMBERS) == LEAST
