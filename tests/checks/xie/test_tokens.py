"""Tests of xie's formulas on prompts drawn as tokens, which show errors common to moments and claims."""

import pytest
import torch

from icl.checks.token_evidence import draw_tokens
from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.support import tokens
from icl.checks.xie.support.fewer_heads import risks_on_tokens
from icl.checks.xie.support.initial_guess import xie_law
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.support.tokens import GuessLayer, Quantity
from icl.checks.xie.theorem1 import Theorem1
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory import quadratic
from icl.theory.quadratic import LabelMoments, QuadraticRisk
from tests.checks.routes import disagrees

GUESSING = xie_law(3, 4, prior_mean=[1, -2, 0.5], guess_vector=[0.5, 1, 0], guess_bias=0.7)


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (3, 2), (4, 9)])
def test_the_controls_have_mean_zero(dim, context):
    law = xie_law(dim, context)
    controls_BF = tokens.controls(draw_tokens(law, generator(1, "check"), 100_000))
    error_F = controls_BF.std(0) / len(controls_BF) ** 0.5
    assert float((controls_BF.mean(0) / error_F).abs().max()) < 4


@pytest.mark.parametrize("factor", [0.985, 1.015])
def test_a_risk_off_by_one_and_a_half_percent_fails(factor):
    case = Saturation(GUESSING)
    quantity = Quantity([GuessLayer(case.law, case.heads())], factor * case.least.value, case.rounding)
    assert tokens.compare_with_tokens([quantity], generator(0, "check")).verdict == "fails"


def test_a_gap_off_by_a_millionth_fails_and_contexts_are_cut():
    case = Saturation(tokens.cut(xie_law(3, 10**6, prior_mean_norm=0.01)))
    assert case.context == tokens.MOST_TOKENS
    layers = [GuessLayer(case.law, case.heads()), GuessLayer(*case.step(), -1.0)]
    for factor, verdict in ((1, "holds"), (1 + 1e-6, "fails")):
        found = tokens.compare_with_tokens(
            [Quantity(layers, factor * case.gap, case.rounding)], generator(0, "check")
        )
        assert found.verdict == verdict


def test_too_few_prompts_are_undecided(monkeypatch):
    monkeypatch.setattr(tokens, "MOST_PROMPTS", 300)
    finding = Theorem1(3, 4, restarts=1).measure()
    assert (finding.verdict, finding.bound.of) == ("undecided", "tokens_sees")


def test_the_further_head_adds_a_quarter_to_the_least_risk_and_meets_every_moment():
    case = Saturation(GUESSING)
    P_HPP, Q_HPP = case.beside(generator(0, "check"))
    assert float(case.risk.value_of_layer(P_HPP, Q_HPP)) == pytest.approx(1.25 * case.least.value, rel=1e-9)
    J_PP = torch.eye(4, dtype=torch.float64)
    J_PP[-1, :3] = case.w_star_D
    X_KPP = torch.einsum("p,rk->kpr", P_HPP[-1, -1], Q_HPP[-1])
    assert float((J_PP.T @ X_KPP @ J_PP)[:3].abs().min()) > 1e-4


def one_token_more(mutate):
    """Change moments, weights and closed forms to a context one longer than the prompts."""

    def longer(right, case, law):
        right(case, law)
        case.context += 1

    mutate(
        LinearRegressionLaw,
        "risk_arguments",
        lambda right, law, r=0: right(law, r) | {"context": law.context_R[r] + 1},
    )
    mutate(Saturation, "__init__", longer)


def no_pairing_of_four_labels(mutate):
    def dropped(right, moments, *arguments):
        right(moments, *arguments)
        moments.v_v = moments.v_v - len(moments.Sigma)  # of d^2 + 2 d

    mutate(LabelMoments, "__init__", dropped)


def no_pairing_of_two_tokens(mutate):
    def dropped(right, m, N):
        CC = quadratic._covariance_products(m)
        return CC + CC.permute(0, 2, 1, 3) / N

    mutate(quadratic, "second_gram", dropped)


def transposed_keys(mutate):
    mutate(QuadraticRisk, "value_of_layer", lambda right, risk, P, Q, *ends: right(risk, P, Q.mT, *ends))


@pytest.mark.parametrize(
    ("check", "mutant", "of"),
    [
        (Theorem1, one_token_more, "largest_certificate_error"),
        (PriorGap, one_token_more, "tokens_z"),
        (Theorem1, no_pairing_of_four_labels, "tokens_z"),
        (Theorem1, no_pairing_of_two_tokens, None),
        (PriorGap, no_pairing_of_two_tokens, None),
        (Theorem1, transposed_keys, "tokens_z"),
    ],
)
def test_a_mutant_of_the_moments_fails(mutate, monkeypatch, check, mutant, of):
    mutant(mutate)
    monkeypatch.setattr(tokens, "MOST_PROMPTS", 30_000)
    monkeypatch.setattr(tokens, "SEES", 1.0)  # what is decided, decided with fewer prompts
    asked = check(3, 4, **({"restarts": 1} if check is Theorem1 else {}))
    finding = asked.measure()
    assert finding.verdict == ("undecided" if of is None and disagrees(finding) else "fails")
    assert of in (None, finding.bound.of)
    if of == "largest_certificate_error":  # by the tokens alone too
        assert risks_on_tokens(asked.law, asked.biased, asked.seed).verdict == "fails"
