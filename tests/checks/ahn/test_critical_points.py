import numpy as np
import pytest

from icl.checks.ahn.critical_points import CriticalPoints
from icl.checks.ahn.support.critical_set import distance, halfway, share_of_rounding
from tests.checks.asking import Mutant, blinded, holds, seen


@holds(
    CriticalPoints,
    {"starts": 32},
    {"dim": 2, "context": 30, "layers": 2, "starts": 8},
    {"dim": 3, "eigenvalues": [100, 1, 0.01], "layers": 3, "starts": 8},
)
def test_holds(check, finding):
    measured = finding.measured
    assert finding.control.measured > 1000
    assert measured["of_eq_8"] == [0, 1, 2, 6][check.layers]
    assert measured["different_risks_of_eq_11"] > 3 or check.starts < 32
    assert list(np.argsort(measured["risks_of_eq_11"])) == list(range(measured["of_eq_11"]))


test_points_that_are_not_critical_or_are_one_are_seen = seen(
    CriticalPoints,
    Mutant(
        CriticalPoints,
        "_minima",
        lambda right, check: [point.scaled(1 + 1e-6) for point in right(check)],
        of="largest_gradient",
    ),
    blinded(CriticalPoints, "_orders", lambda right, check: [right(check)[0]] * 2),
    starts=8,
)


def test_distance_and_the_point_halfway():
    check = CriticalPoints(starts=8)
    one, other = check._orders()[:2]
    middle = halfway(one, other)
    assert distance(one, middle) == pytest.approx(distance(one, other) / 2)
    assert share_of_rounding(one) < 1 < share_of_rounding(middle)
    best = check._minima()[0]  # which has B
    assert distance(best, halfway(best, best)) == 0
