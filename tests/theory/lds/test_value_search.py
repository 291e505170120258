import numpy as np
import pytest
import torch

from icl.theory import dynamical_system as lds
from icl.theory.lds.value_search import _gap, search_values
from icl.theory.quadratic import QuadraticRisk


def risk(window, length=8):
    covariances = lds.covariances_of_independent_modes(2, 0.01, 0.01, 0.01, length)
    return lds.quadratic_risk(lds.moments(covariances, window), window)


def test_never_below_the_convex_bound_and_as_good_as_alternating_least_squares():
    for window, heads in ((1, 1), (2, 1), (2, 2)):
        form = risk(window)
        bound = form.convex_bound()
        found = search_values(form, heads, np.random.default_rng(0), 4)
        other = form.best_with_heads(heads, np.random.default_rng(1), 2, iterations=300)
        assert found.value >= bound.value - bound.rounding
        assert found.value <= other.value * (1 + 1e-9)
        assert float(form.value_of_heads(found.b_HP, found.a_HKP)) == pytest.approx(found.value, rel=1e-10)


def test_one_head_against_a_scan_over_all_angles():
    """Scan two free entries of b: every direction, one by one."""
    form, free = risk(2), torch.tensor([True, False, True])
    found = search_values(form, 1, np.random.default_rng(0), 4, free)
    values = []
    for angle in np.linspace(0, np.pi, 721):
        b_HP = torch.tensor([[np.cos(angle), 0.0, np.sin(angle)]], dtype=torch.float64)
        values.append(form.best_with_values(b_HP).value)
    assert found.value <= min(values)
    assert found.value == pytest.approx(min(values), rel=1e-5)
    assert float(found.b_HP[0, 1]) == 0


def test_the_gradient_by_differences():
    form, free = risk(2), torch.ones(3, dtype=torch.bool)
    x = np.random.default_rng(3).standard_normal(6)
    gradient = _gap(x, form, 2, free)[1]
    for entry in range(6):
        step = np.zeros(6)
        step[entry] = 1e-5
        slope = (_gap(x + step, form, 2, free)[0] - _gap(x - step, form, 2, free)[0]) / 2e-5
        assert gradient[entry] == pytest.approx(slope, rel=1e-5, abs=1e-10)


def test_linear_regression_too():
    eye = torch.eye(2, dtype=torch.float64)
    form = QuadraticRisk.linear_regression(eye, eye, 4, prior_mean=torch.tensor([1.0, 2.0]).double())
    found = search_values(form, 1, np.random.default_rng(0), 6)
    other = form.best_with_heads(1, np.random.default_rng(1), 8)
    assert found.value == pytest.approx(other.value, rel=1e-7)


def test_refuses_no_heads_and_no_freedom():
    form, rng = risk(1), np.random.default_rng(0)
    with pytest.raises(ValueError, match="heads=0"):
        search_values(form, 0, rng)
    with pytest.raises(ValueError, match="free entry"):
        search_values(form, 1, rng, free_P=torch.tensor([False, False]))
