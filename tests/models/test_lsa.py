"""Tests of LSA in Gram form against the tokens it stands for: the token path, and the paper's own layers."""

import pytest
import torch

from icl.models import LSA, LinearTransformer
from icl.random import generator
from icl.tasks import ConditionedRegression

D, N, SEEDS = 3, 7, (0, 1)


def law(**task):
    given = {"dim": D, "context": N, "condition": 4.0, "largest": [1.0, 2.0], "label_noise": 0.3}
    return ConditionedRegression(**given | task).law(SEEDS)


def prompts(of):
    return of.token_prompts([generator(seed, "check") for seed in SEEDS], 4)


def model(layers=2, **settings):
    family = LSA(D, layers, 2, **settings)
    family.initialise(SEEDS)
    return LinearTransformer(family)


def by_definition(heads, H_BPM):
    """Return H + sum_h V_h H (K_h H)^T (Q_h H), eq. (3.1a)."""
    return H_BPM + sum((V @ H_BPM) @ (K @ H_BPM).mT @ (Q @ H_BPM) for V, K, Q in heads)


def test_it_is_the_papers_layers():
    """Compare with eq. (3.1a), which has no mask and no 1/n: V_h = P_h / n here, where the Gram matrix has
    it."""
    lsa, prompt, W = model(mask=False), prompts(law(constant=True)), D + 2
    P, Q = lsa.parametrization.stack()
    identity = torch.eye(W, dtype=torch.float64)
    for r in range(len(SEEDS)):
        H_BPM = torch.cat([prompt.context_RBNP[r], prompt.query_RBP[r][:, None]], 1).mT
        for values, queries in zip(P[r], Q[r], strict=True):
            H_BPM = by_definition(
                [(P_PP / N, identity, Q_PP) for P_PP, Q_PP in zip(values, queries, strict=True)], H_BPM
            )
        read_B = lsa.parametrization.o[r, 0, 0] @ H_BPM[..., -1].mT
        assert (read_B - lsa.predict(prompt)[r]).abs().max() < 1e-12 * read_B.abs().max()


@pytest.mark.parametrize("read_in", [1.0, 0.2])
def test_it_begins_at_the_scalar_family(read_in):
    a_L, beta_L, c = torch.tensor([0.3, 0.2]), torch.tensor([0.1]), 1.1
    scalars = [*a_L.tolist(), *beta_L.tolist(), c]
    lsa = model(mask=False, scalars=scalars, init_std=0.0, read_in=read_in)
    prompt = prompts(law(constant=True))
    H_BPM = torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0][:, None]], 1)[..., : D + 1].mT
    of_x = torch.diag(torch.tensor([1.0] * D + [0.0]).double())
    for a, beta in zip(a_L.tolist(), [*beta_L.tolist(), 0.0], strict=True):
        moves = torch.diag(torch.tensor([-beta / N] * D + [-a / N]).double())
        H_BPM = by_definition([(moves, of_x, of_x)], H_BPM)
    expected_B = -c * H_BPM[..., D, -1]
    assert (lsa.predict(prompt)[0] - expected_B).abs().max() < 1e-6 * expected_B.abs().max()


def test_queries_of_one_prompt_are_read_one_by_one():
    lsa = model(mask=True, width=8, rank=2, init_std=0.3)
    prompt = prompts(law(constant=True)).gram()
    gram_RPPB, query_RPB = prompt.gram_RBPP.movedim(1, -1), prompt.query_RBP.movedim(1, -1)
    both_RKB = lsa.parametrization.columns(gram_RPPB, torch.stack([query_RPB, -2 * query_RPB], 2))
    one_RB = lsa.last_entry(gram_RPPB, query_RPB)
    assert torch.allclose(both_RKB, torch.stack([one_RB, -2 * one_RB], 1), rtol=1e-12)


@pytest.mark.parametrize("cached", [1, 3 * len(SEEDS) * (D + 2) * 8])
def test_without_a_gradient_prompts_are_read_in_pieces(cached, monkeypatch):
    """Read four prompts one at a time, and three and then one."""
    lsa, prompt = model(mask=False, width=8, rank=2, init_std=0.3), prompts(law(constant=True)).gram()
    whole_RB = lsa.predict(prompt).detach()
    monkeypatch.setattr("icl.models.batched.CACHED", cached)
    with torch.no_grad():
        torch.testing.assert_close(lsa.predict(prompt), whole_RB, rtol=1e-12, atol=0)


def test_tokens_of_another_width_are_refused():
    with pytest.raises(ValueError, match="tokens have 7 entries"):
        model().parametrization.embedded(torch.zeros(7))
