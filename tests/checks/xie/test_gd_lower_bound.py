import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie import gd_lower_bound
from icl.checks.xie.gd_lower_bound import GdLowerBound
from icl.checks.xie.support.initial_guess import xie_law
from icl.checks.xie.support.saturation import Saturation
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression
from tests.checks.asking import Mutant, blinded, held, holds, refuses, seen


@holds(
    GdLowerBound,
    {},
    {"dim": 1, "context": 1, "prior_mean": [-0.01]},
    {"dim": 6, "context": 2, "prior_mean_norm": 40.0},
    {"dim": 3, "context": 10**5},
    *({"prior_mean_norm": norm} for norm in (1e-12, 1e-9, 1e-6, 1e-2, 1e3, 1e6)),
    {"dim": 3, "context": 10**6, "prior_mean": [0, 1e-4, 0]},
    of="gap",
)
def test_holds_by_the_closed_form(check, finding):
    d, C, square = check.law.dim, check.law.context_R[0], float(check.law.mean_RD.square().sum())
    measured = finding.measured
    assert measured["gap"] == pytest.approx(2 * square / (d * C + 2), rel=1e-12)
    assert measured["gap"] > 100 * finding.bound.value
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-9)
    around = measured["least_excess_around_best_weights"]
    assert not 1e-4 < square < 1e4 or measured["gap"] < around < 1.1 * measured["gap"] + 1e-3
    assert measured["excess_of_the_step"] < 1e-25
    for eta in (measured["eta_from"], measured["eta_to"]):  # there the step is as good as the model
        risk = d * ((1 - eta) ** 2 + eta**2 * (d + 1) / C)
        assert risk == pytest.approx(measured["lsa_risk"], rel=1e-6)


# Weights below the least risk: a risk that some weights undercut is no bound, however well it agrees.
BELOW = lambda right, check, case: case.gap * (1 - 1e-6)  # noqa: E731

ROUNDING, GAP_ROUNDING = Saturation.rounding.fget, Saturation.gap_rounding.fget
WIDE = [  # bounds a million times as wide
    blinded(Saturation, "rounding", property(lambda case: 1e6 * ROUNDING(case))),
    blinded(Saturation, "gap_rounding", property(lambda case: 1e6 * GAP_ROUNDING(case))),
]

test_a_wrong_closed_form_or_bound_is_seen = seen(
    GdLowerBound,
    Mutant(gd_lower_bound, "gap", lambda right, *of: right(*of) * (1 + 1e-10), of="gap_error"),
    Mutant(gd_lower_bound, "gd_risk", lambda right, *of: right(*of) * (1 + 1e-10), of="risks_error"),
    Mutant(Saturation, "descent_risk", property(lambda case: case.least.value)),  # the closed form is off
    Mutant(GdLowerBound, "_least_excess_around", BELOW),
    # a strict gap where there is none
    Mutant(
        GdLowerBound, "_excesses_without_gap", lambda right, *of: [(1e-3, 1e-20)], of="excess_of_the_step"
    ),
    blinded(GdLowerBound, "_excesses_without_gap", lambda right, *of: [(0.0, 1.0)]),
    *WIDE,
)


def test_too_small_a_gap_is_undecided():
    assert GdLowerBound(prior_mean_norm=1e-20).measure().verdict == "undecided"
    with pytest.raises(InputError, match=r"^check\.prior_mean: is 1e-150 in size, must be at least"):
        GdLowerBound(prior_mean_norm=1e-150)
    assert gd_lower_bound.strict_verdict(0.0, 1e-12) == "undecided"
    assert gd_lower_bound.strict_verdict(-1e-9, 1e-12) == "fails"
    assert gd_lower_bound.strict_verdict(float("nan"), 1e-12) == "undecided"


def test_judges_weights():
    law = LinearRegression(3, 8, prior_mean=[1, 2, 0], read_out=1).law([0, 4])
    best = [matrix.expand(2, 1, 3, 4, 4) for matrix in Saturation(law.replica(0)).heads()]
    finding = held(GdLowerBound(), Weights("multihead", {"P": best[0], "Q": best[1]}, law))
    assert finding.measured["excess_over_gd_by_seed"] == pytest.approx([10 / 26] * 2)
    assert finding.measured["least_possible_excess_by_seed"] == pytest.approx([10 / 26] * 2)
    for scale in (0.0, 1e-3, 1.0):
        P, Q = torch.from_numpy(scale * generator(0, "check").standard_normal((2, 2, 1, 4, 4)))
        finding = GdLowerBound().judge(Weights("full", {"P": P, "Q": Q}, law))
        assert finding.verdict == "holds"
        assert finding.measured["least_excess_over_gd"] > 10 / 26


def test_judge_rejects_the_step_itself_and_refuses_a_law_that_allows_it(monkeypatch):
    law = xie_law(3, 8, prior_mean=[1, 2, 0], guess_vector=[1, 2, 0])
    P, Q = (matrix[None, None] for matrix in Saturation(law).heads())
    weights = Weights("multihead", {"P": P, "Q": Q}, law)
    refuses(GdLowerBound(), (weights, r"^check\.weights: "))
    monkeypatch.setattr(Saturation, "guess_error", 1.0)
    finding = GdLowerBound().judge(weights)
    assert finding.verdict == "undecided"
    assert finding.measured["least_excess_over_gd"] == pytest.approx(0, abs=1e-13)
