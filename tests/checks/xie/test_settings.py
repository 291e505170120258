from __future__ import annotations

import pytest

from icl.checks.xie.initial_guess import WithGuess, law_around


@pytest.mark.parametrize(
    ("dim", "mean", "norm", "expected"),
    [(3, None, None, [1, 1, 1]), (2, [3, -1], None, [3, -1]), (4, None, 6.0, [3] * 4), (4, None, 0, [0] * 4)],
)
def test_the_prior_mean_is_ones_unless_given(dim, mean, norm, expected):
    assert law_around(dim, 5, 0, mean, norm).mean_RD.tolist() == [expected]


def test_the_guess_has_norm_and_bias_one_unless_given():
    assert WithGuess(dim=4).guess_D.tolist() == [0.5] * 4 and WithGuess(dim=4).guess_bias == 1
    assert WithGuess(dim=4, guess_vector_norm=6).guess_D.tolist() == [3] * 4
    assert WithGuess(dim=2, guess_vector=[3, -1], guess_bias=-2).guess_D.tolist() == [3, -1]


def test_up_to_a_million_a_prior_and_a_guess_are_within_the_arithmetic():
    """Spread over three entries, they may come back a few ulps larger."""
    WithGuess(dim=3, prior_mean_norm=1e6, guess_vector_norm=1e6, guess_bias=1e6)
