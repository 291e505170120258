import pytest
import torch
from flint import arb

from icl.tasks.expected_traces import expected_word, sparse_a_risk
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.rationals import matrix
from icl.theory.words import Drawn
from tests.theory.drawing import covariance, draw


@pytest.mark.parametrize(("k", "N"), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (6, 4)])
def test_words_are_those_in_rationals(k, N):
    Sigma, matrices = covariance(0, 2), list(draw(1, k, 2, 2))
    exact = Drawn(matrix(Sigma.tolist()), N).trace([matrix(X.tolist()) for X in matrices])
    assert float(expected_word(matrices, Sigma, N)) == pytest.approx(float(arb(exact)), rel=1e-11)


@pytest.mark.parametrize("L", [1, 2, 3])
def test_on_s_it_equals_the_polynomial_and_its_gradient_is_proportional_to_sigma(L):
    Sigma, D, N = covariance(12, 4), 4, 11
    inverse = torch.linalg.inv(Sigma)
    a_L = torch.tensor([0.4, 1.1, 0.7], dtype=torch.float64)[:L]
    A_LDD = (a_L[:, None, None] * inverse).requires_grad_()
    value = sparse_a_risk(A_LDD, Sigma, inverse, N)
    exact = InvariantRisk(D, N, L).derivatives(a_L.tolist())
    assert float(value.detach()) == pytest.approx(exact.value, rel=1e-11)
    (gradient_LDD,) = torch.autograd.grad(value, A_LDD)
    expected = torch.from_numpy(exact.gradient_V)[:, None, None] * Sigma / D
    assert torch.allclose(gradient_LDD, expected, rtol=1e-9, atol=1e-10)
