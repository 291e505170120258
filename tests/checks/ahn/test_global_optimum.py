import torch

from icl.checks.ahn import global_optimum
from icl.checks.ahn.global_optimum import GlobalOptimum
from icl.theory.ahn.invariant_risk import InvariantRisk

SMALL = {"dim": 2, "context": 10, "starts": 4}


def test_no_start_ends_lower_and_most_end_there():
    start = GlobalOptimum(**SMALL)._starts(3)
    assert start.shape == (4, 3, 2, 2) and not torch.allclose(start, start.mT)
    finding = GlobalOptimum(**SMALL).measure()
    assert finding.verdict == "undecided" and finding.control.rejected
    assert finding.measured["lowest_excess"] > -1e-9 and finding.bound.of == "certified_gap"
    assert min(finding.measured["starts_that_end_there"].values()) > 2
    assert finding.measured["one_layer_excess"] < 1e-13
    possible = finding.measured["least_possible_excess_by_layers"]
    assert all(-0.2 < possible[depth] < finding.measured["lowest_excess"] for depth in ("2", "3"))


def test_a_lower_bound_that_s_attains_decides(monkeypatch):
    """Replace the bound by the risk on S itself: then the search has nothing left to say."""

    def attained(dim, context, depth, seed):
        return InvariantRisk(dim, context, depth).optimum().risk, 0.0, 1.0

    monkeypatch.setattr(global_optimum, "certified_bound", attained)
    assert GlobalOptimum(**SMALL | {"starts": 1, "layers": 2}).measure().verdict == "holds"
