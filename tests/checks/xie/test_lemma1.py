import pytest

from icl.checks.xie import lemma1
from icl.checks.xie.lemma1 import Lemma1
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    Lemma1,
    {},
    {"dim": 1, "context": 1, "heads": 1},
    {"heads": 1},
    {"dim": 3, "context": 5, "heads": 2, "prior_mean": [1, -2, 0.5], "seed": 3},
    {"dim": 3, "context": 5, "heads": 3, "prior_mean": [1, -2, 0.5]},
    {"dim": 2, "context": 10**6, "heads": 7},
    {"dim": 4, "heads": 2, "prior_mean_norm": 0},
    {"dim": 3, "prior_mean_norm": 1e-2},
    {"dim": 5, "prior_mean_norm": 1e4},
    of="violation",
)
def test_holds(check, finding):
    assert finding.control.measured < 0
    measured = finding.measured
    assert measured["violation"] > 1e4 * finding.bound.value
    nothing = check.dim + float(check.law.mean_RD.square().sum())
    assert measured["risk_at_midpoint"] == pytest.approx(nothing, rel=1e-12)
    assert measured["risk_at_points"][0] == measured["risk_at_points"][1]
    saturated = measured["risk_at_points"][0] == pytest.approx(measured["least_risk"], rel=1e-8)
    assert saturated == (check.heads >= check.dim or not check.law.mean_RD.any())


def off(share):
    return lambda right, *given: right(*given) * (1 + share)


def no_violation(right, risk, first, second):
    return 0 * risk(*first)


test_a_wrong_closed_form_or_weights_off_the_optimum_are_seen = seen(
    Lemma1,
    Mutant(lemma1, "gd_risk", off(1e-9), settings={"heads": 1}),
    Mutant(lemma1, "gd_risk", off(1e-9)),
    Mutant(lemma1, "gap", off(1e-9), of="violation_error"),
    Mutant(lemma1, "optimal_matrices", off(1e-4)),
    Mutant(lemma1, "violation", no_violation),  # not what was predicted
    # a concave control
    blinded(QuadraticRisk, "value", lambda right, risk, X, direct=None: -X.square().sum((-1, -2, -3))),
    heads=11,
)


def test_points_without_a_violation_prove_nothing(mutate):
    mutate(lemma1, "violation", no_violation)
    mutate(lemma1, "gd_risk", lambda *_: 20.0)
    mutate(lemma1, "gap", lambda *_: 0.0)
    assert Lemma1().measure().verdict == "undecided"
