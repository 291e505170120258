"""The regularised logistic loss against its definition, and the constant of the bounds on a step."""

from random import Random

import pytest
from flint import arb, arb_mat, arb_series, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.giannou import one_step
from icl.theory.giannou.balls import positive
from icl.theory.giannou.decrease import error_allowed
from icl.theory.giannou.logistic import Logistic, direction, draw, minimum, norm, rounded, variance

LOSS = Logistic(fmpq_mat(2, 2, [fmpq(1, 2), fmpq(1, 3), fmpq(-1, 4), fmpq(2, 3)]), [1, -1], fmpq(1, 5))
X, U = fmpq_mat(2, 1, [fmpq(3, 2), fmpq(-1, 4)]), fmpq_mat(2, 1, [fmpq(1, 3), 2])


def along(loss, x, u):
    """Return f(x + t u) as a series in t, from its definition."""
    square = [
        sum(a * b for a, b in zip(p.entries(), q.entries(), strict=True)) for p, q in ((x, x), (x, u), (u, u))
    ]
    series = loss.mu / 2 * arb_series([square[0], 2 * square[1], square[2]], prec=4)
    for y, at, move in zip(loss.y, (loss.A * x).entries(), (loss.A * u).entries(), strict=True):
        series += (1 + arb_series([-y * at, -y * move], prec=4).exp()).log() / len(loss.y)
    return series


def test_value_slope_and_curvature_are_those_of_the_series():
    at, series = LOSS.at(X), along(LOSS, X, U)
    assert at.value.overlaps(series[0])
    assert (at.gradient.transpose() * arb_mat(U))[0, 0].overlaps(series[1])
    assert (at.local_norm(arb_mat(U)) ** 2 * 2 * LOSS.mu).overlaps(series[2])


def test_drawn_points_and_directions_are_in_the_unit_ball():
    loss = draw(Random(3), 9, 2, fmpq(1, 10))
    longest = max(sum(x * x for x in row) for row in loss.A.tolist())
    assert fmpq(97, 100) < longest <= 1 and set(loss.y) == {1, -1}
    assert fmpq(998, 1000) < norm(arb_mat(direction(Random(1), 5))) ** 2 < 1 + fmpq(1, 10**12)
    assert norm(loss.at(minimum(loss)).gradient) < 1e-15
    with pytest.raises(Blurred):
        rounded(arb_mat([[arb(0, 2)]]))


def test_bounds_on_a_step_hold_and_their_constant_is_where_they_meet():
    tail = (fmpq(0), fmpq(40))  # beyond, p (1 - p) m^2 < m^2 exp(-m)
    assert positive(lambda m: one_step.BEND - variance(m) * m * m, tail)
    for mu, error in ((fmpq(1, 10), fmpq(1, 100)), (fmpq(1), fmpq(1))):
        C = one_step.constant_of(mu, error)
        assert (one_step.growth_bounds(mu, C)[1] + error).contains(0)
        for share in (fmpq(1, 100), fmpq(1, 2), fmpq(99, 100)):
            assert share * C + one_step.growth_bounds(mu, share * C)[1] + error < C


def test_the_largest_error_is_that_of_mu_one_third():
    allowed = [error_allowed(fmpq(k, 60)) for k in range(1, 600)]
    assert max(allowed) == error_allowed(fmpq(1, 3)) == allowed[19] == fmpq(1, 10000)
    assert error_allowed(fmpq(1)) == fmpq(1, 100) ** 2 * 2 / 4
