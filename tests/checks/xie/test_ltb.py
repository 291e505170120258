from __future__ import annotations

import pytest

from icl.checks.xie import ltb
from icl.checks.xie.ltb import Ltb
from icl.theory.closed_forms import isotropic_step

SETTINGS = [
    {},
    {"dim": 1, "context": 1, "samples": 5},
    {"dim": 3, "context": 30, "prior_mean": [0.0, -3.0, 1.0], "samples": 7},
    {"dim": 4, "prior_mean_norm": 20.0, "samples": 7},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_fails_since_the_best_block_is_the_gradient_step(settings):
    check = Ltb(**settings)
    finding = check.measure()
    assert finding.verdict == "fails" and finding.control.rejected
    measured, d, C = finding.measured, check.dim, check.context
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-9)
    assert measured["gap_left_by_block"] < finding.bound.value < measured["gap_of_lsa"]


def test_a_block_without_the_guess_or_of_another_step_refutes_nothing(monkeypatch):
    monkeypatch.setattr(ltb, "isotropic_step", lambda dim, context: 1.01 * isotropic_step(dim, context))
    assert Ltb(dim=3).measure().verdict == "undecided"
    monkeypatch.undo()
    monkeypatch.setattr(ltb, "block_of", lambda descent: ltb.wrong_blocks(descent)[1])
    assert Ltb(dim=3).measure().verdict == "undecided"


def test_a_step_that_is_not_the_gradient_s_refutes_nothing(monkeypatch):
    right = ltb.gradient_step
    monkeypatch.setattr(ltb, "gradient_step", lambda w, eta, prompt: right(w, eta * (1 + 1e-9), prompt))
    assert Ltb(dim=3).measure().verdict == "undecided"


def test_a_step_of_lower_risk_would_make_the_claim_hold(monkeypatch):
    monkeypatch.setattr(ltb.Saturation, "descent_risk", 0.1)
    assert Ltb(dim=3).measure().verdict == "holds"
