"""The losses that the label head is judged by, against layers of eq. (3.1a) in rationals."""

import numpy as np
import pytest
import torch
from flint import fmpq, fmpq_mat

from icl.checks.giannou.label_head import Prompts, drawn, losses
from icl.theory.giannou.columns import Head, forward


def test_a_loss_is_that_of_the_transformer():
    X = fmpq_mat([[1, 2, -1, fmpq(1, 2)], [0, fmpq(1, 3), 1, 2]])  # the last column is the query
    y, n, D = fmpq_mat([[1, -1, fmpq(1, 2), 0]]), 3, 2
    C = [
        [[fmpq(-2, 5), fmpq(1, 7)], [fmpq(-1, 2), fmpq(1, 5)]],
        [[fmpq(-1, 5), fmpq(0)], [fmpq(-3, 5), fmpq(1, 9)]],
    ]
    H = {"x": X, "y": y}
    for c in C:
        # of each pair of blocks: C_pq H_p H_q^T H_q / n
        moves = [(p, q, {p: {p: c[i][j] / n}}) for i, p in enumerate("xy") for j, q in enumerate("xy")]
        H = forward(tuple(Head(value, key={q: 1}, query={q: 1}) for _, q, value in moves), H)
    expected = (fmpq(-9, 10) * H["y"][0, n] - fmpq(5)) ** 2 / D

    def numbers(M):
        return torch.tensor([[int(e.p) / int(e.q) for e in row] for row in M.tolist()], dtype=torch.float64)

    Z_PM = torch.cat([numbers(X), numbers(y)])
    prompt = Prompts((Z_PM @ Z_PM.mT / n)[None], Z_PM[None, :, n], torch.tensor([5.0]).double())
    C_L22 = torch.stack([numbers(fmpq_mat(c)) for c in C])
    got = losses(C_L22, torch.tensor(-0.9, dtype=torch.float64), prompt)
    assert float(got) == pytest.approx(int(expected.p) / int(expected.q), rel=1e-12)


def test_prompts_have_the_moments_of_their_law():
    gram_BPP, query_BP, target_B = drawn(np.random.default_rng(0), 2, 5, 100_000)
    mean_PP, x_BD = gram_BPP.mean(0), query_BP[:, :2]
    # E S + x x^T / n, E |w|^2, and the covariance of S w with w: w is not seen, but y^2 = w^T S w is
    assert torch.allclose(mean_PP[:2, :2], 1.2 * torch.eye(2).double(), atol=0.02)
    assert abs(float(mean_PP[2, 2]) - 2) < 0.03 and not query_BP[:, 2].any()
    own_BDD = gram_BPP[:, :2, :2] - x_BD[:, :, None] * x_BD[:, None] / 5
    w_BD = torch.linalg.solve(own_BDD, gram_BPP[:, :2, 2])
    assert torch.allclose((w_BD * x_BD).sum(1), target_B, rtol=1e-6, atol=1e-6)
    assert torch.allclose((gram_BPP[:, 2, :2] * w_BD).sum(1), gram_BPP[:, 2, 2], rtol=1e-6, atol=1e-6)
    assert abs(float((target_B**2).mean()) - 2) < 0.05
