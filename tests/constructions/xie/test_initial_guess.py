import numpy as np
import pytest
import torch

from icl.constructions.xie import initial_guess
from icl.constructions.xie.initial_guess import (
    block_of_yq_lsa,
    heads_of_matrices,
    one_step_gd,
    yq_lsa_of_block,
)
from icl.theory.quadratic import QuadraticRisk
from tests.theory.changing import sees


def prompt(rng, dim, context):
    """Return tokens (C, P) of a linear task, and a query x."""
    x_ND, w_D = rng.standard_normal((context, dim)), rng.standard_normal(dim)
    return np.column_stack([x_ND, x_ND @ w_D]), rng.standard_normal(dim)


def layer(P_PP, Q_PP, z_NP, q_P):
    """Return eq. (3), the query's column, token by token."""
    moved_P = sum((z_P @ Q_PP @ q_P) * (P_PP @ z_P) for z_P in z_NP) / len(z_NP)
    return q_P + moved_P


@pytest.mark.parametrize(("dim", "context", "eta"), [(1, 1, 2.0), (3, 2, 0.3), (2, 9, 1.0)])
def test_one_step_of_gradient_descent(dim, context, eta):
    rng = np.random.default_rng(dim)
    z_NP, x_D = prompt(rng, dim, context)
    w_star_D = rng.standard_normal(dim)
    P_PP, Q_PP = one_step_gd(torch.from_numpy(w_star_D), eta)

    def loss(w_D):
        return ((z_NP[:, -1] - z_NP[:, :-1] @ w_D) ** 2).mean() / 2

    steps = 1e-5 * np.eye(dim)
    gradient_D = np.array([(loss(w_star_D + h) - loss(w_star_D - h)) / 2e-5 for h in steps])
    out_P = layer(P_PP.numpy(), Q_PP.numpy(), z_NP, np.append(x_D, w_star_D @ x_D))
    assert out_P[-1] == pytest.approx((w_star_D - eta * gradient_D) @ x_D, rel=1e-8)
    np.testing.assert_array_equal(out_P[:-1], x_D)  # only the label moves
    bare_P = layer(P_PP.numpy(), Q_PP.numpy(), z_NP, np.append(x_D, 0))
    assert bare_P[-1] == pytest.approx(out_P[-1] - w_star_D @ x_D, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_d_heads_have_the_matrices(dim):
    half_KPP = torch.from_numpy(np.random.default_rng(dim).standard_normal((dim + 1,) * 3))
    X_KPP = half_KPP + half_KPP.mT
    X_KPP[:, -1, -1] = 0
    P_HPP, Q_HPP = heads_of_matrices(X_KPP)
    assert P_HPP.shape == Q_HPP.shape == (dim, dim + 1, dim + 1)
    products_KPP = torch.einsum("hp,hrk->kpr", P_HPP[:, -1], Q_HPP)
    torch.testing.assert_close((products_KPP + products_KPP.mT) / 2, X_KPP, rtol=1e-14, atol=1e-14)
    assert not P_HPP[:, :-1].any()
    identity, mean = torch.eye(dim).double(), torch.ones(dim).double()
    given = {"prior_mean": mean, "guess_vector": -mean, "guess_bias": 0.5, "target_sign": 1}
    risk = QuadraticRisk.linear_regression(identity, identity, 5, **given)
    assert float(risk.value_of_layer(P_HPP, Q_HPP)) == pytest.approx(float(risk.value(X_KPP)), rel=1e-12)


def test_fewer_query_entries_leave_columns_of_q_empty():
    X_KPP = torch.diag(torch.tensor([1.0, 2.0, 0.0])).double()[None]
    P_HPP, Q_HPP = heads_of_matrices(X_KPP)
    assert P_HPP.shape == Q_HPP.shape == (2, 3, 3)
    assert not Q_HPP[:, :, 1:].any()
    with pytest.raises(ValueError, match="X_k"):
        heads_of_matrices(torch.eye(3, dtype=torch.float64)[None])


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 5), (4, 3)])
def test_a_block_computes_what_yq_lsa_computes(dim, context):
    rng = np.random.default_rng(context)
    z_NP, x_D = prompt(rng, dim, context)
    P_PP, Q_PP = rng.standard_normal((2, dim + 1, dim + 1))
    v_D = rng.standard_normal(dim)
    block = block_of_yq_lsa(*map(torch.from_numpy, (P_PP, Q_PP, v_D)))
    assert block["W1"].shape == block["W2"].shape == (1, dim + 1)
    expected = layer(P_PP, Q_PP, z_NP, np.append(x_D, v_D @ x_D))[-1]
    assert block_output(block, z_NP, x_D) == pytest.approx(expected, rel=1e-12)
    assert not block["Q"][:, -1].any()  # the block's own query token ends in 0: it needs no guess


@pytest.mark.parametrize(("dim", "hidden"), [(1, 1), (3, 1), (3, 2), (2, 7)])
def test_yq_lsa_computes_what_a_block_computes(dim, hidden):
    rng = np.random.default_rng(hidden)
    z_NP, x_D = prompt(rng, dim, 4)
    block = {name: torch.from_numpy(rng.standard_normal((dim + 1, dim + 1))) for name in "PQ"}
    block |= {name: torch.from_numpy(rng.standard_normal((hidden, dim + 1))) for name in ("W1", "W2")}
    found = yq_lsa_of_block(*block.values())
    assert found["v"].shape == (1, dim)
    P_PP, Q_PP, v_D = found["P"].numpy(), found["Q"].numpy(), found["v"].numpy()[0]
    output = layer(P_PP, Q_PP, z_NP, np.append(x_D, v_D @ x_D))[-1]
    assert output == pytest.approx(block_output(block, z_NP, x_D), rel=1e-12)


def test_there_and_back_keeps_the_guess():
    P_PP, Q_PP = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 4, 4)))
    v_D = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    back = yq_lsa_of_block(*block_of_yq_lsa(P_PP, Q_PP, v_D).values())
    torch.testing.assert_close(back["v"][0], v_D, rtol=0, atol=0)
    torch.testing.assert_close(back["P"][-1], P_PP[-1], rtol=0, atol=0)


def block_output(block, z_NP, x_D):
    """Return the last entry of W2^T W1 (q + attention), eq. (30)."""
    P_PP, Q_PP, W1, W2 = (block[name].numpy() for name in ("P", "Q", "W1", "W2"))
    return (W2.T @ W1 @ layer(P_PP, Q_PP, z_NP, np.append(x_D, 0)))[-1]


test_a_changed_weight_is_seen = sees(
    initial_guess,
    ("-eta * w_star_D", "eta * w_star_D", 0, test_one_step_of_gradient_descent, (3, 2, 0.3)),
    ("w_star_D, eta\n", "w_star_D, 1\n", 0, test_one_step_of_gradient_descent, (3, 2, 0.3)),
    ("torch.eye(D)", "2 * torch.eye(D)", 0, test_one_step_of_gradient_descent, (3, 2, 0.3)),
    ("*= 2", "*= 1", 0, test_d_heads_have_the_matrices, (4,)),
    ("a_HKP.mT", "a_HKP", 0, test_d_heads_have_the_matrices, (4,)),
    ("torch.outer(Q_PP[:, -1], v_D)", "0", 0, test_a_block_computes_what_yq_lsa_computes, (2, 5)),
    ("key_PP[:, -1] = 0", "key_PP[-1] = 0", 0, test_a_block_computes_what_yq_lsa_computes, (2, 5)),
    ("value_PP[-1] = P_PP[-1]", "value_PP[-1] = 2 * P_PP[-1]", 0,
     test_a_block_computes_what_yq_lsa_computes, (2, 5)),
    ("row_P @ P_PP", "P_PP @ row_P", 0, test_yq_lsa_computes_what_a_block_computes, (3, 2)),
    ("row_P[None, :-1]", "2 * row_P[None, :-1]", 0, test_yq_lsa_computes_what_a_block_computes, (3, 2)),
    ("W2_XP[:, -1] @ W1_XP", "W1_XP[:, -1] @ W2_XP", 0, test_yq_lsa_computes_what_a_block_computes, (3, 2)),
)  # fmt: skip
