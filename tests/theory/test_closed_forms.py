import pytest

from icl.theory.closed_forms import isotropic_risk, isotropic_step
from icl.theory.one_layer import OneLayer


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (5, 20), (4, 3), (3, 2)])
def test_equation_7_is_the_least_risk_of_one_layer(dim, context):
    layer = OneLayer([1] * dim, context)
    _, Q = layer.optimum()
    assert isotropic_step(dim, context) == pytest.approx(-float(Q[0, 0].p) / float(Q[0, 0].q), rel=1e-14)
    least = layer.least()
    assert isotropic_risk(dim, context) == pytest.approx(float(least.p) / float(least.q), rel=1e-14)
