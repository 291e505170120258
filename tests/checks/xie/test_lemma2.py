from __future__ import annotations

import pytest
import torch

from icl.checks.xie import lemma2
from icl.checks.xie.lemma2 import Lemma2
from icl.random import generator
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import held

SETTINGS = [
    {},
    {"dim": 1, "context": 1},
    {"dim": 3, "context": 5, "prior_mean": [1, -2, 0.5], "seed": 3},
    {"dim": 2, "context": 10**6},
    {"dim": 4, "prior_mean_norm": 0},
    {"dim": 5, "prior_mean_norm": 1e3},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_holds_and_rejects_its_control(settings):
    check = Lemma2(**settings)
    finding = held(check)
    assert finding.control.measured < 0
    D, C = check.dim, check.context
    assert finding.measured["violation"] == pytest.approx(D * C / (C + D + 1), rel=1e-7)
    assert finding.measured["risk_at_midpoint"] == pytest.approx(D, rel=1e-9)
    assert finding.measured["risk_at_points"][0] == finding.measured["risk_at_points"][1]


def test_the_second_derivative_in_v():
    """2 E (1 + <G, X_p>)^2, by sampling."""
    check = Lemma2(dim=3, context=4)
    rng = generator(0, "control")
    P_PP, Q_PP = torch.from_numpy(rng.standard_normal((2, 4, 4))) / 4
    G_BPP = check.law.gram_prompts([generator(0, "eval")], 200_000).gram_RBPP[0]
    factor_B = 2 * (1 + G_BPP @ Q_PP[:, -1] @ P_PP[-1]).square()
    measured = check.measure().measured["smallest_eigenvalue_in_v"]
    assert abs(float(factor_B.mean()) - measured) < 5 * float(factor_B.std()) / 200_000**0.5


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("gd_risk", lambda right: lambda *args: right(*args) * (1 + 1e-9)),
        ("isotropic_step", lambda right: lambda *args: right(*args) * (1 + 1e-4)),
        ("one_step_gd", lambda right: lambda w, eta: right(0.99 * w, eta)),
        ("read_in", lambda right: lambda v: right((1 + 1e-5) * v)),
    ],
)
def test_another_point_fails(mutate, name, wrong):
    mutate(lemma2, name, wrong)
    assert Lemma2().measure().verdict == "fails"


def test_points_without_a_violation_prove_nothing(monkeypatch):
    monkeypatch.setattr(lemma2, "violation", lambda risk, first, second: 0 * risk(*first))
    assert Lemma2().measure().verdict == "fails"  # not what was predicted
    monkeypatch.setattr(lemma2, "gd_risk", lambda *args: 10.0)
    assert Lemma2().measure().verdict == "undecided"


def test_a_concave_control_leaves_it_undecided(mutate):
    def turned(right):
        return lambda risk, X, direct=None: right(risk, X, direct) * (-1 if X.ndim == 4 else 1)

    mutate(QuadraticRisk, "value", turned)
    finding = Lemma2().measure()
    assert not finding.control.rejected and finding.verdict == "undecided"
