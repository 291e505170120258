from fractions import Fraction

import numpy as np
import pytest

from icl.theory.quadrature import gauss_rule, legendre_rule
from icl.theory.wishart import trace_moment


@pytest.mark.parametrize(
    ("dim", "context", "count"), [(1, 1, 1), (1, 1, 6), (5, 20, 14), (5, 3, 14), (5, 10, 41)]
)
def test_rule_reproduces_every_moment(dim, context, count):
    moments = [Fraction(trace_moment(k, dim, context), context**k) for k in range(2 * count)]
    nodes, weights = gauss_rule(moments, count)
    assert (weights > 0).all()
    assert (np.diff(nodes) > 0).all()
    for k, m in enumerate(moments):
        assert float(weights @ nodes**k / float(m)) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("count", [1, 2, 5, 40, 91, 301])
def test_legendre_rule_to_the_last_bits(count):
    """Compare every even moment to 2 / (n + 1); NumPy's rule of 301 nodes is off by 10^-12."""
    nodes, weights = legendre_rule(count)
    assert (np.diff(nodes) > 0).all() and (nodes == -nodes[::-1]).all() and len(nodes) == count
    for power in {0, 2, 2 * (count // 4), 2 * (count // 2), 2 * count - 2}:
        if power < 2 * count:
            assert weights @ nodes**power == pytest.approx(2 / (power + 1), rel=2e-14)
