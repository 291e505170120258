import pytest
import torch

from icl.checks.xie import theorem2
from icl.checks.xie.support.factorised_moment import factorised_gradient
from icl.checks.xie.theorem2 import Theorem2


def test_the_factorised_moment_at_zero_weights_and_by_hand():
    check = Theorem2(dim=2, prior_mean=[1.0, 0.0])
    limit = check._at(theorem2.LIMIT)
    zero = torch.zeros(2, 3, 3, dtype=torch.float64)
    gradient, least = factorised_gradient(limit, zero, zero)
    assert gradient == 0 and least > 0
    # m_k = E[w_k M(w)], M = [[I, w], [w^T, |w|^2]], w ~ N((1, 0), I); E M has corner |w*|^2 + d = 3.
    mean = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 3]]).double()
    first = torch.tensor([[1, 0, 2], [0, 1, 0], [2, 0, 5]]).double()
    second = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 0]]).double()
    rest = first - (first * mean).sum() / mean.square().sum() * mean
    assert least == pytest.approx(2 * float(rest.square().sum() + second.square().sum()) ** 0.5)
