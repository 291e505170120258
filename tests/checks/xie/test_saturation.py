from __future__ import annotations

import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie.initial_guess import setting
from icl.checks.xie.saturation import Saturation, given_heads, with_guess
from icl.errors import InputError
from icl.models import LinearTransformer, MultiHead
from icl.random import generator
from icl.tasks import LinearRegression

LAW = setting(3, 4, prior_mean=[1.0, -2.0, 0.5], guess_vector=[0.0, 1.0, 0.0], guess_bias=0.7)


def test_the_heads_attain_the_convex_bound():
    case = Saturation(LAW)
    risk, gradient = case.at(*case.heads())
    assert risk == pytest.approx(case.least.value, abs=case.rounding)
    assert gradient < 1e-12
    assert [case.constructed(heads) for heads in (3, 4, 7)] == pytest.approx(
        [case.least.value] * 3, abs=1e-12
    )


def test_risks_against_sampled_prompts():
    """The saturated heads by the model's own forward pass, the gradient step by hand from the tokens."""
    case, prompt = Saturation(LAW), LAW.token_prompts([generator(0, "eval")], 50_000)
    P_HPP, Q_HPP = case.heads()
    model = MultiHead(3, 1, len(P_HPP))
    model.load({"P": P_HPP[None, None], "Q": Q_HPP[None, None]})
    loss_B = (LinearTransformer(model).predict(prompt) - prompt.target_RB)[0].detach().square()
    assert float(loss_B.mean()) == pytest.approx(case.least.value, abs=5 * float(loss_B.std()) / 50_000**0.5)
    x_BCD, y_BC = prompt.context_RBNP[0, :, :, :3], prompt.context_RBNP[0, :, :, 3]
    residual_BC = y_BC - x_BCD @ LAW.mean_RD[0]
    step_BD = LAW.mean_RD[0] + 4 / (4 + 3 + 1) * (residual_BC[..., None] * x_BCD).mean(1)
    loss_B = ((step_BD * prompt.query_RBP[0, :, :3]).sum(-1) - prompt.target_RB[0]).square()
    assert float(loss_B.mean()) == pytest.approx(case.descent_risk, abs=5 * float(loss_B.std()) / 50_000**0.5)


def test_gradient_against_differences():
    case, rng = Saturation(LAW), generator(1, "check")
    P_HPP, Q_HPP, dP, dQ = (torch.from_numpy(rng.standard_normal((2, 4, 4))) for _ in range(4))
    risk = case.risk.value_of_layer
    P, Q = P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()
    gradients = torch.autograd.grad(risk(P, Q), (P, Q))
    difference = float(
        risk(P_HPP + 1e-6 * dP, Q_HPP + 1e-6 * dQ) - risk(P_HPP - 1e-6 * dP, Q_HPP - 1e-6 * dQ)
    )
    slope = float((gradients[0] * dP).sum() + (gradients[1] * dQ).sum())
    assert difference / 2e-6 == pytest.approx(slope, rel=1e-6)
    assert case.at(P_HPP, Q_HPP)[1] == pytest.approx(float(torch.stack(gradients).norm()), rel=1e-12)


@pytest.mark.parametrize("context", [1, 5, 2**60])
def test_rounding_at_covers_what_rounding_does(context):
    """At the minimiser, where risk and gradient are known, for large w* too; and not by a wide margin."""
    for norm in (1.0, 100.0):
        case = Saturation(setting(4, context, prior_mean_norm=norm))
        heads = case.heads()
        risk, gradient = case.at(*heads)
        risk_rounding, gradient_rounding = case.rounding_at(*heads)
        expected = 4 * 5 / (context + 5) + 2 * norm**2 / (4 * context + 2)
        assert abs(risk - expected) < risk_rounding < 3e-11 * case.risk.constant
        assert gradient < gradient_rounding < 1e-9 * norm**3


def test_given_heads_of_both_families():
    law = LinearRegression(2, 6, eigenvalues=[1, 1], prior_mean_norm=1.0, read_out=1).law([0, 5])
    P = torch.from_numpy(generator(0, "check").standard_normal((2, 1, 3, 3)))
    laws, P_RHPP, Q_RHPP = given_heads(Weights("full", {"P": P, "Q": 2 * P}, law), "X")
    assert len(laws) == 2 and P_RHPP.shape == Q_RHPP.shape == (2, 1, 3, 3)
    assert torch.equal(Q_RHPP, 2 * P_RHPP) and torch.equal(P_RHPP[:, 0], P[:, 0])
    heads = P[:, :, None].expand(2, 1, 4, 3, 3)
    laws, P_RHPP, _ = given_heads(Weights("multihead", {"P": heads, "Q": heads}, law), "X")
    assert P_RHPP.shape == (2, 4, 3, 3)


@pytest.mark.parametrize(
    ("family", "shape", "task"),
    [
        ("yq_lsa", (1, 1, 3, 3), {}),
        ("full", (1, 2, 3, 3), {}),
        ("full", (0,), {}),
        ("multihead", (1, 1, 2, 4, 4), {}),
        ("full", (1, 1, 3, 3), {"read_out": -1}),
        ("full", (1, 1, 3, 3), {"label_noise": 0.1}),
        ("full", (1, 1, 3, 3), {"eigenvalues": [1, 2]}),
        ("full", (1, 1, 3, 3), {"task_covariance": [[1.0, 0.2], [0.2, 1.0]]}),
    ],
)
def test_refuses_weights_of_another_kind(family, shape, task):
    law = LinearRegression(2, 6, **({"eigenvalues": [1, 1], "read_out": 1} | task)).law([0])
    matrix = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(InputError, match=r"weights"):
        given_heads(Weights(family, {"P": matrix, "Q": matrix}, law), "Theorem X")


def test_refuses_weights_of_a_law_beyond_its_arithmetic():
    matrix = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    for beyond in ({"prior_mean_norm": 1e7}, {"guess_vector_norm": 1e7}, {"guess_bias": -1e7}):
        law = setting(2, 3, **beyond)
        with pytest.raises(InputError, match=r"^check\.weights: .* must be at most 1e\+06"):
            given_heads(Weights("full", {"P": matrix, "Q": matrix}, law), "Theorem X")


def test_with_guess_changes_the_guess_only():
    law = with_guess(LAW, torch.ones(3, dtype=torch.float64))
    assert law.guess_bias == 0 and law.guess_RD.tolist() == [[1, 1, 1]]
    assert torch.equal(law.mean_RD, LAW.mean_RD) and law.context_R == LAW.context_R
