"""Tests of the descent to a local minimum: derivatives by differences, the end by another method."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from icl.random import generator
from icl.tasks import DynamicalSystem
from icl.theory.lds.local_minimum import LocalMinimum, _Local, descend
from icl.theory.lds.value_search import search_values


def risk_of(window, setting="a"):
    return DynamicalSystem(2, 10, window, setting).law([0]).quadratic_risk


@pytest.mark.parametrize("window", [1, 3])
def test_derivatives(window):
    local, n = _Local(risk_of(window), window, window + 1), (window + 1) ** 2
    at = np.random.default_rng(0).standard_normal(n)

    def difference(function):
        return np.array([(function(at + 1e-6 * e) - function(at - 1e-6 * e)) / 2e-6 for e in np.eye(n)])

    gradient, hessian = local.gradient(at), local.hessian(at)
    np.testing.assert_allclose(gradient, difference(local.value), atol=1e-8 * np.abs(gradient).max())
    np.testing.assert_allclose(hessian, difference(local.gradient), atol=1e-8 * np.abs(hessian).max())


@pytest.mark.parametrize(("window", "setting"), [(1, "a"), (2, "b")])
def test_it_ends_where_lbfgs_ends_and_at_the_scale_of_gradient_flow(window, setting):
    risk, rng = risk_of(window, setting), np.random.default_rng(window)
    best = search_values(risk, 1, generator(0, "search", window), 2)
    b, a = best.b_HP[0].numpy(), best.a_HKP[0, :window].numpy()
    scale = np.sqrt(np.linalg.norm(a) / np.linalg.norm(b))
    b, a = b * scale, a / scale
    start_b, start_a = (M + 0.02 * rng.standard_normal(M.shape) * np.abs(M).max() for M in (b, a))
    found = descend(risk, start_b, start_a)
    assert found.reached and found.step < 1e-8 and found.value <= best.value * (1 + 1e-12)
    local = _Local(risk, window, window + 1)
    start = np.concatenate([start_b, start_a.ravel()])
    options = {"maxcor": 30, "ftol": 0, "gtol": 1e-11, "maxiter": 20_000, "maxfun": 40_000}
    end = minimize(local.value, start, jac=local.gradient, method="L-BFGS-B", options=options).x
    assert local.value(end) * risk.constant == pytest.approx(found.value, rel=1e-9)
    keys = end[window + 1 :].reshape(a.shape)
    np.testing.assert_allclose(
        end[: window + 1, None, None] * keys, found.b_P[:, None, None] * found.a_KP, atol=1e-3 * scale**2 * 9
    )
    conserved = np.square(start_b).sum() - np.square(start_a).sum()
    assert np.square(found.b_P).sum() - np.square(found.a_KP).sum() == pytest.approx(conserved, rel=1e-9)


def test_it_leaves_a_saddle_and_does_not_call_one_a_minimum():
    """Take b = 0, a = 0, which is critical and no minimum; a head of one parity in b may be a saddle."""
    risk = risk_of(2)
    found = descend(risk, np.full(3, 1e-6), np.full((2, 3), 1e-6))
    assert found.reached and found.value < 0.99 * risk.constant
    assert not LocalMinimum(1.0, found.b_P, found.a_KP, 1e-12, -1e-3).reached
    assert not LocalMinimum(1.0, found.b_P, found.a_KP, 1e-3, 1e-3).reached


def test_curvature_is_the_hessians_second_eigenvalue():
    """Take the Hessian at the minimum: the scale's direction is an eigenvector of eigenvalue 0."""
    risk = risk_of(2)
    found = descend(risk, np.array([-1.0, 0.1, 1.0]), np.ones((2, 3)))
    at = np.concatenate([found.b_P, found.a_KP.ravel()])
    flat = torch.from_numpy(at)

    def value(x):
        rows = torch.cat([x[3:].view(2, 3), x.new_zeros(1, 3)])
        return risk.value_of_heads(x[None, :3], rows[None])

    values = np.linalg.eigvalsh(torch.autograd.functional.hessian(value, flat).numpy())
    assert abs(values[0]) < 1e-10 * values[-1]
    assert values[1] / values[-1] == pytest.approx(found.curvature, rel=1e-6)
