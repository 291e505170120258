import pytest
from flint import arb

from icl.tasks.expected_traces import expected_word
from icl.theory.rationals import matrix
from icl.theory.words import Drawn
from tests.theory.drawing import covariance, draw


@pytest.mark.parametrize(("k", "N"), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (6, 4)])
def test_words_are_those_in_rationals(k, N):
    Sigma, matrices = covariance(0, 2), list(draw(1, k, 2, 2))
    exact = Drawn(matrix(Sigma.tolist()), N).trace([matrix(X.tolist()) for X in matrices])
    assert float(expected_word(matrices, Sigma, N)) == pytest.approx(float(arb(exact)), rel=1e-11)
