import pytest
import torch

from icl.checks.xie import lemma2
from icl.checks.xie.lemma2 import Lemma2
from icl.random import generator
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    Lemma2,
    {},
    {"dim": 1, "context": 1},
    {"dim": 3, "context": 5, "prior_mean": [1, -2, 0.5], "seed": 3},
    {"dim": 2, "context": 10**6},
    {"dim": 4, "prior_mean_norm": 0},
    {"dim": 3, "prior_mean_norm": 1e-2},
    {"dim": 5, "prior_mean_norm": 1e3},
    of="violation",
)
def test_holds(check, finding):
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


def no_violation(right, risk, first, second):
    return 0 * risk(*first)


def concave(right, risk, X, direct=None):
    return right(risk, X, direct) * (-1 if X.ndim == 4 else 1)


test_another_point_is_seen = seen(
    Lemma2,
    Mutant(lemma2, "gd_risk", lambda right, *sizes: right(*sizes) * (1 + 1e-9), of="violation_error"),
    Mutant(lemma2, "isotropic_step", lambda right, *sizes: right(*sizes) * (1 + 1e-4)),
    Mutant(lemma2, "one_step_gd", lambda right, w, eta: right(0.99 * w, eta)),
    Mutant(lemma2, "read_in", lambda right, v: right((1 + 1e-5) * v)),
    Mutant(lemma2, "violation", no_violation),  # not what was predicted
    blinded(QuadraticRisk, "value", concave),
)


def test_points_without_a_violation_prove_nothing(mutate):
    mutate(lemma2, "violation", no_violation)
    mutate(lemma2, "gd_risk", lambda *_: 10.0)
    assert Lemma2().measure().verdict == "undecided"
