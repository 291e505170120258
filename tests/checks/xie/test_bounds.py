"""Each finding shows the inequality that decides it."""

from __future__ import annotations

import pytest

from icl.checks.xie import gd_lower_bound, lemma1, lemma2, lemma3, theorem2, theorem4
from icl.checks.xie.gd_forward import GDForward
from icl.checks.xie.gd_lower_bound import GdLowerBound
from icl.checks.xie.initial_guess import worst
from icl.checks.xie.lemma1 import Lemma1
from icl.checks.xie.lemma2 import Lemma2
from icl.checks.xie.lemma3 import Lemma3
from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.theorem1 import Theorem1
from icl.checks.xie.theorem2 import Theorem2
from icl.checks.xie.theorem4 import Theorem4

SHOWN = {
    GDForward: ("max_error", "<"),
    GdLowerBound: ("gap", ">"),
    Lemma1: ("violation", ">"),
    Lemma2: ("violation", ">"),
    Lemma3: ("max_error", "<"),
    PriorGap: ("largest_error_over_rounding", "<"),
    Theorem1: ("largest_difference_beyond_d", "<"),
    Theorem2: ("gradient_norm_in_the_limit", "<"),
    Theorem4: ("gradient_norm_best_eta", "<"),
}


@pytest.mark.parametrize("norm", [1e-2, 1e3])
@pytest.mark.parametrize("check", SHOWN)
def test_the_bound_is_of_what_decides(check, norm):
    small = {"restarts": 1} if check is Theorem1 else {}
    finding = check(dim=3, prior_mean_norm=norm, **small).measure()
    bound = finding.bound
    assert finding.verdict == ("fails" if check is Theorem2 else "holds")
    assert (bound.of, bound.direction) == SHOWN[check]
    measured = finding.measured[bound.of]
    assert measured <= bound.value if bound.direction == "<" else measured > bound.value


@pytest.mark.parametrize(
    ("check", "module", "name", "of"),
    [
        (GdLowerBound, gd_lower_bound, "gap", "gap_error"),
        (Lemma1, lemma1, "gap", "violation_error"),
        (Lemma2, lemma2, "gd_risk", "violation_error"),
        (Theorem4, theorem4, "gd_risk", "risk_error"),
        (Theorem4, theorem4, "unit_step_gradient", "gradient_error_unit_eta"),
    ],
)
def test_what_fails_is_shown(monkeypatch, check, module, name, of):
    honest = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *settings: honest(*settings) + 1e-3)
    finding = check(dim=3).measure()
    assert (finding.verdict, finding.bound.of) == ("fails", of)
    assert finding.measured[of] == pytest.approx(1e-3, rel=1e-6)


def test_a_converse_that_fails_is_shown(monkeypatch):
    honest = lemma3.yq_lsa_of_block
    monkeypatch.setattr(lemma3, "yq_lsa_of_block", lambda *m: honest(*m) | {"v": 2 * honest(*m)["v"]})
    finding = Lemma3(dim=3).measure()
    assert (finding.verdict, finding.bound.of) == ("fails", "max_error_converse")


def test_theorem2_shows_what_keeps_it_undecided(monkeypatch):
    honest = theorem2.Saturation.heads
    wrong = lambda case: tuple((1 + (case.context == 10)) * matrix for matrix in honest(case))  # noqa: E731
    monkeypatch.setattr(theorem2.Saturation, "heads", wrong)
    finding = Theorem2(dim=3).measure()
    assert (finding.verdict, finding.bound.of) == ("undecided", "largest_gradient_of_minimisers")
    assert finding.measured[finding.bound.of] > 1


def test_the_worst_is_the_largest_share_of_its_rounding():
    assert worst([(1e-3, 1.0), (1e-5, 1e-6), (2.0, 3.0)]) == (1e-5, 1e-6)
