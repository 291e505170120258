import pytest

from icl.checks.ahn.critical_points import CriticalPoints
from icl.checks.ahn.support.critical_set import distance, halfway, share_of_rounding


def test_distance_and_the_point_halfway():
    check = CriticalPoints(starts=8)
    one, other = check._orders()[:2]
    middle = halfway(one, other)
    assert distance(one, middle) == pytest.approx(distance(one, other) / 2)
    assert share_of_rounding(one) < 1 < share_of_rounding(middle)
    best = check._minima()[0]  # which has B
    assert distance(best, halfway(best, best)) == 0
