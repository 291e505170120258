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
from tests.checks.asking import held, refuses


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
