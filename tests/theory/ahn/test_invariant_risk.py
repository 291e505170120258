import numpy as np
import pytest
import torch
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize_scalar

from icl.tasks.ahn.risk_on_s import scalars_on_s
from icl.theory.ahn.critical_set import query_polynomial
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.rationals import rational
from icl.theory.wishart import covariance_moments, mean_trace
from tests.theory.drawing import covariance, draw, eye

STEPS = st.floats(-0.5, 2.0)


def exact_value(risk, a_L, beta_L):
    """Return the risk by a polynomial in rationals, of floats at their exact binary value."""
    q = query_polynomial(*([rational(float(x)) for x in xs] for xs in (a_L, beta_L))) ** 2
    return float(arb(mean_trace(covariance_moments(risk.dim, risk.context, q.degree() + 1), q)))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 12),
    st.lists(STEPS, min_size=3, max_size=3),
    st.lists(STEPS, min_size=2, max_size=2),
)
def test_nodes_agree_with_rational_arithmetic(dim, context, a_L, beta_L):
    risk = InvariantRisk(dim, context, 3, with_b=True)
    assert risk.value(a_L, beta_L) == pytest.approx(exact_value(risk, a_L, beta_L), rel=1e-11)


def test_nodes_agree_with_rational_arithmetic_at_degree_80():
    risk = InvariantRisk(5, 10, 4, with_b=True)
    a_L, beta_L = [0.5, 1.1, 3.0, 9.0], [0.16, 0.6, 1.7]
    assert risk.value(a_L, beta_L) == pytest.approx(exact_value(risk, a_L, beta_L), rel=1e-11)


def test_derivatives_against_differences():
    risk = InvariantRisk(4, 9, 3, with_b=True)
    theta_V = np.array([0.4, 0.9, 1.3, 0.2, 0.3])

    def value(point):
        return risk.value(point[:3], point[3:])

    def gradient(point):
        return risk.derivatives(point[:3], point[3:]).gradient_V

    here = risk.derivatives(theta_V[:3], theta_V[3:])
    assert here.value == pytest.approx(value(theta_V), rel=1e-14)
    assert here.gradient_V == pytest.approx(approx_fprime(theta_V, value, 1e-7), rel=1e-4)
    assert here.hessian_VV == pytest.approx(approx_fprime(theta_V, gradient, 1e-7), rel=1e-4, abs=1e-5)
    assert here.hessian_VV == pytest.approx(here.hessian_VV.T, rel=1e-13)


@pytest.mark.parametrize(
    ("dim", "context", "layers"), [(1, 1, 2), (5, 20, 1), (5, 20, 3), (5, 3, 4), (10, 10, 2)]
)
def test_theorem_3_optimum_is_the_lower_bound_and_the_only_minimum(dim, context, layers):
    risk = InvariantRisk(dim, context, layers)
    best = risk.optimum()
    assert best.risk == pytest.approx(float(risk.lower_bound()), rel=1e-12)
    assert best.strict
    assert best.newton_gain < 1e-16
    assert (np.diff(best.a_L) > 0).all()
    found = risk.minimise(np.random.default_rng(0), starts=6)
    assert len(found) == 1
    assert found[0].a_L == pytest.approx(best.a_L, rel=1e-9)


def test_local_minima_of_theorem_4():
    risk = InvariantRisk(5, 10, 3, with_b=True)
    minima = risk.minimise(np.random.default_rng(1), starts=24)
    risks = [minimum.risk for minimum in minima]
    assert risks == sorted(risks)
    assert float(risk.lower_bound()) <= risks[0] < InvariantRisk(5, 10, 3).optimum().risk
    assert risks[0] == pytest.approx(0.0392593209, rel=1e-8)
    for minimum in minima:
        assert minimum.risk == pytest.approx(exact_value(risk, minimum.a_L, minimum.beta_L), rel=1e-11)
        assert minimum.b_L == pytest.approx(minimum.beta_L / minimum.a_L[:-1])
        assert 0 <= minimum.newton_gain < 1e-16
        for step in 1e-3 * np.random.default_rng(2).standard_normal((5, 5)):
            theta_V = np.concatenate([minimum.a_L, minimum.beta_L]) * (1 + step)
            assert risk.value(theta_V[:3], theta_V[3:]) > minimum.risk


def test_minima_of_a_tiny_risk_are_found():
    """Search at context 10^4, where the spectrum is within 9 % of 1 and the risk of degree 13 is 1e-22."""
    minima = InvariantRisk(3, 10**4, 3, with_b=True).minimise(np.random.default_rng(0), starts=4)
    assert minima and all(minimum.risk < 2e-22 and minimum.newton_gain < 1e-12 for minimum in minima)


def test_saddles_are_not_reported(monkeypatch):
    """Descend from the best point with equal layers, a saddle of S where a descent may stop."""
    risk = InvariantRisk(5, 20, 2)
    step = minimize_scalar(lambda a: risk.value([a, a]), bounds=(0, 2), options={"xatol": 1e-12}).x
    here = risk.derivatives([step, step])
    assert np.linalg.norm(here.gradient_V) < 1e-6
    assert np.linalg.eigvalsh(here.hessian_VV)[0] < -0.1
    monkeypatch.setattr(InvariantRisk, "_descend", lambda self, theta_V: np.array([step, step]))
    assert risk.minimise(np.random.default_rng(0), starts=3) == []


def test_projection_on_s():
    Sigma, a_L, b_L = covariance(4, 3), torch.tensor([0.3, 0.9]).double(), torch.tensor([0.5, -2.0]).double()
    A_LDD, B_LDD = a_L[:, None, None] * torch.linalg.inv(Sigma), b_L[:, None, None] * eye(3)
    assert torch.allclose(scalars_on_s(A_LDD, Sigma)[0], a_L)
    found_a, found_beta = scalars_on_s(-A_LDD, Sigma, B_LDD)  # (11) has A = -a Sigma^{-1}
    assert torch.allclose(found_a, a_L)
    assert torch.allclose(found_beta, a_L * b_L)
    root, off = torch.linalg.cholesky(Sigma), draw(5, 2, 3, 3)
    whitened = (root.T @ off @ root).diagonal(dim1=-2, dim2=-1).mean(-1)
    assert torch.allclose(scalars_on_s(off, Sigma)[0], whitened)
