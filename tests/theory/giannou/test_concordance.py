"""giannou's Proposition 3.3: the ratio of derivatives by its formula, and its supremum by a search."""

from random import Random

import pytest
from flint import arb, fmpq, fmpq_mat

from icl.theory.giannou.concordance import drawn, is_largest, ratio, squared_supremum, worst
from icl.theory.rationals import dot


@pytest.mark.parametrize("mu", [fmpq(1, 1000), fmpq(3, 10), fmpq(20)])
def test_the_ratio_by_derivatives_of_the_sigmoid(mu):
    for A, y, x, u in drawn(3, 4, 2, Random(1)):
        assert all(dot(a, a) <= 1 for a in map(lambda row: fmpq_mat([row]), A.tolist()))
        assert set(y) <= {1, -1}
        second, third = mu, arb(0)
        for at, along in zip((A * x).entries(), (A * u).entries(), strict=True):
            c = along / arb(dot(u, u)).sqrt()
            p = 1 / (1 + arb(at).exp())
            second += p * (1 - p) * c**2 / 4
            third += p * (1 - p) * (1 - 2 * p) * c**3 / 4
        assert (ratio(A, y, mu, x, u) - abs(third) / second**1.5).contains(0)


@pytest.mark.parametrize("mu", [fmpq(1, 1000), fmpq(3, 10), fmpq(20)])
def test_the_supremum_is_that_of_a_grid(mu):
    squared = squared_supremum(mu)
    shares = (worst(mu) * fmpq(k, 100) for k in range(1, 150) if worst(mu) * k <= 25)
    grid = [q * q * (1 - 4 * q) / (q + mu) ** 3 for q in shares]
    assert max(grid) == squared == grid[99]
    assert is_largest(squared, mu)
    assert not is_largest(squared * fmpq(99, 100), mu) and not is_largest(squared * fmpq(101, 100), mu)
