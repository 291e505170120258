import pytest
import torch

from icl.checks.ahn.global_optimum import GlobalOptimum
from tests.checks.asking import held

SMALL = {"dim": 2, "context": 10, "starts": 4}


def test_no_start_ends_lower_and_most_end_there():
    start = GlobalOptimum(**SMALL)._starts(3)
    assert start.shape == (4, 3, 2, 2) and not torch.allclose(start, start.mT)
    finding = GlobalOptimum(**SMALL, layers=3).measure()
    assert finding.verdict == "undecided" and finding.control.rejected
    assert finding.measured["lowest_excess"] > -1e-9 and finding.bound.of == "certified_gap"
    assert min(finding.measured["starts_that_end_there"].values()) > 2
    assert finding.measured["one_layer_excess"] < 1e-13
    possible = finding.measured["least_possible_excess_by_layers"]
    assert possible["2"] == 0 and -0.2 < possible["3"] < finding.measured["lowest_excess"]


@pytest.mark.parametrize(("dim", "context"), [(2, 10), (3, 2)])
def test_two_layers_are_decided(dim, context):
    finding = held(GlobalOptimum(dim=dim, context=context, starts=1))
    measured = finding.measured
    assert (
        measured["certified_gap"]
        == 0
        < measured["squares_error"]
        < 1e-6 * measured["squares_error_off_optimum"]
    )
    assert measured["equivariant_bound_by_layers"]["2"] < measured["risk_by_layers"]["2"]
