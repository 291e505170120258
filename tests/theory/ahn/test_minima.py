from dataclasses import replace

import pytest
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from icl.theory.ahn.critical_set import query_polynomial
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.ahn.minima import derivatives, enclosed
from icl.theory.calculus import proved
from icl.theory.rationals import diagonal
from icl.theory.wishart import covariance_moments, mean_trace

POINT = {1: [fmpq(2, 3)], 2: [fmpq(2, 3), fmpq(5, 4), fmpq(-1, 3)]}


def exact(moments, theta):
    L = (len(theta) + 1) // 2
    return mean_trace(moments, query_polynomial(theta[:L], theta[L:]) ** 2)


def derivative(values):
    """Return the first two derivatives at 0 of the polynomial with these values at 0, 1, 2, .."""
    count = len(values)
    powers = fmpq_mat(count, count, [t**k for t in range(count) for k in range(count)])
    found = powers.solve(fmpq_mat(count, 1, values))
    return found[1, 0], 2 * found[2, 0]


@pytest.mark.parametrize("L", [1, 2])
def test_derivatives_are_those_of_the_polynomial(L):
    moments, theta = covariance_moments(2, 5, 3**L), POINT[L]
    risk, slope, bend = derivatives(moments, [arb(x) for x in theta])
    assert risk.contains(exact(moments, theta))

    def along(*moved):
        return derivative(
            [
                exact(moments, [x + t * moved.count(k) for k, x in enumerate(theta)])
                for t in range(3**L + 2 * len(moved))
            ]
        )

    for i in range(len(theta)):
        assert slope[i, 0].contains(along(i)[0]) and slope[i, 0].rad() < 1e-9
        assert bend[i, i].contains(along(i)[1])
        for j in range(i):
            assert bend[i, j].contains((along(i, j)[1] - along(i)[1] - along(j)[1]) / 2)
            assert bend[j, i].overlaps(bend[i, j])


def test_one_layer_has_the_minimum_of_a_parabola():
    moments = covariance_moments(3, 7, 3)
    found = enclosed(moments, [1.0])
    assert found.a[0].contains(moments[1] / moments[2]) and found.a[0].rad() < 1e-12
    assert found.risk.contains(moments[0] - moments[1] ** 2 / moments[2])


def test_every_leading_minor_decides():
    for V in (1, 2, 3):
        for k in (None, *range(V)):
            H = arb_mat(diagonal([-1 if i == k else 1 for i in range(V)]))
            box = proved(lambda at, H=H: (H * arb_mat([[x] for x in at]), H), [arb(0)] * V, [1] * V)
            assert (box is None) == (k is not None)


def test_a_minimum_is_enclosed_and_other_points_are_not():
    moments, risk = covariance_moments(3, 7, 9), InvariantRisk(3, 7, 2, with_b=True)
    end = risk.descend([0.5, 1.2, 0.1])
    with ctx.workprec(256):
        found = enclosed(moments, end)
        assert all(abs(x - y) < 1e-6 for x, y in zip([*found.a, *found.beta], end, strict=True))
        assert abs(found.risk - risk.value(end[:2], end[2:])) < 1e-12
        assert not found.is_apart(found)
        assert len(found.b) == 1 and abs(found.b[0] * found.a[0] - found.beta[0]) < 1e-30
        for moved in ({"a": [found.a[0], found.a[1] + 1]}, {"beta": [found.beta[0] + 1]}):
            assert found.is_apart(replace(found, **moved))
        assert enclosed(moments, [100.0, -50.0, 30.0]) is None
    with ctx.workprec(24):
        assert enclosed(moments, end) is None
