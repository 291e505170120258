"""Appendix E.1's h against its definition as a power series."""

import pytest
from flint import arb_series, fmpq

from icl.theory.giannou.decrease import (
    c_of,
    error_allowed,
    fall,
    h,
    largest_over,
    slope,
    squared_delta,
)

ZERO, ONE = fmpq(0), fmpq(1)


def series(x, c, z, dx=0, dc=0):
    """Return h to first order along (dx, dc)."""
    x, c = arb_series([x, dx], prec=2), arb_series([c, dc], prec=2)
    delta = (x * x / ((1 + x) * (1 + x)) - 2 * c / (1 + x) + z).sqrt()
    return -x * x / (1 + x) + c - delta - (1 - delta).log()


@pytest.mark.parametrize("z", [ZERO, fmpq(1, 90)])
@pytest.mark.parametrize("x", [fmpq(1, 6), fmpq(3, 2), fmpq(20)])
def test_h_and_its_slope(x, z):
    for delta in (fmpq(1, 9), fmpq(4, 9), fmpq(9, 10)):
        c = c_of(x, delta, z)
        assert squared_delta(x, c, z) == delta**2
        value, slope_x = series(x, c, z, dx=1).coeffs()
        assert (value - h(x, c, z)).contains(0) and value.rad() < 1e-12
        assert (slope_x - slope(x, c, delta)).contains(0) and slope_x.rad() < 1e-9
        if z == 0:
            assert slope(x, c, delta) == -fall(x, delta) < 0
        slope_c = series(x, c, z, dc=1).coeffs()[1]
        assert (slope_c < 0) == (delta > x / (1 + x)) and (slope_c > 0) == (delta < x / (1 + x))


def test_the_largest_value_lies_at_an_end():
    x, z = fmpq(1, 6), fmpq(1, 5000)
    between = [h(x, fmpq(k, 1000), z) for k in range(-10, 11)]
    assert not any(value > largest_over(x, fmpq(1, 100), z) for value in between)
    assert any((value - largest_over(x, fmpq(1, 100), z)).contains(0) for value in between)


def test_the_largest_error_is_that_of_mu_one_third():
    allowed = [error_allowed(fmpq(k, 60)) for k in range(1, 600)]
    assert max(allowed) == error_allowed(fmpq(1, 3)) == allowed[19] == fmpq(1, 10000)
    assert error_allowed(ONE) == fmpq(1, 100) ** 2 * 2 / 4
