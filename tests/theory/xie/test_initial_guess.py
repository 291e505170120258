import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from icl.theory.closed_forms import isotropic_step, theorem1_risk
from icl.theory.quadratic import LabelMoments, QuadraticRisk, second_gram
from icl.theory.xie.initial_guess import (
    constant_step,
    fewest_heads,
    gap,
    gap_slope,
    gd_risk,
    guess_error,
    lost_slope,
    optimal_matrices,
)
from tests.theory.drawing import covariance, draw, eye


def risk_of(m, v, b, context, Sigma=None, Sigma_w=None):
    Sigma, Sigma_w = (eye(len(m)) if M is None else M for M in (Sigma, Sigma_w))
    given = {"prior_mean": m, "guess_vector": v, "guess_bias": b, "target_sign": 1}
    return QuadraticRisk.linear_regression(Sigma, Sigma_w, context, **given)


SIZES = [(1, 1), (1, 40), (2, 2), (3, 1), (3, 10), (6, 3)]
GUESSES = ("none", "vector", "bias", "both", "prior", "prior and bias")


def guess_of(kind, dim, seed=0):
    m = draw(seed, dim)
    v = {"vector": draw(seed + 1, dim), "both": draw(seed + 1, dim), "prior": m, "prior and bias": m}
    return m, v.get(kind, torch.zeros_like(m)), 0.8 if kind in ("bias", "both", "prior and bias") else 0.0


@pytest.mark.parametrize(("dim", "context"), SIZES)
def test_gradient_step(dim, context):
    """Compare (7) with P = eta [[0, 0], [-m^T, 1]] and y_q = <m, x> in the exact engine; the best eta by
    search."""
    m = draw(dim, dim)
    risk = risk_of(m, m, 0.0, context)
    P, Q = torch.zeros(2, 1, dim + 1, dim + 1, dtype=torch.float64)
    P[0, dim, :dim], P[0, dim, dim], Q[0, :dim, :dim] = -m, 1, eye(dim)
    for eta in (0.3, 1.0, isotropic_step(dim, context)):
        assert float(risk.value_of_layer(eta * P, Q)) == pytest.approx(gd_risk(dim, context, eta), rel=1e-12)
    best = minimize_scalar(lambda eta: float(risk.value_of_layer(eta * P, Q)))
    assert best.fun == pytest.approx(gd_risk(dim, context), rel=1e-10)
    assert gd_risk(dim, context) == pytest.approx(dim * (dim + 1) / (context + dim + 1), rel=1e-13)


@pytest.mark.parametrize(("dim", "context"), SIZES)
def test_constant_from_chi_square(dim, context):
    """Compare C tr(Sigma^{-1} S), chi^2 with D C degrees: the mean square by quadrature, its minimum by
    search."""

    def left_over(tau):
        law = chi2(dim * context)
        middle = float(dim * context)
        parts = ((0, middle), (middle, np.inf))
        return sum(quad(lambda t: (tau * t / context - 1) ** 2 * law.pdf(t), *part)[0] for part in parts)

    assert left_over(constant_step(dim, context)) == pytest.approx(gap_slope(dim, context), rel=1e-7)
    best = minimize_scalar(left_over, bracket=(0.5 / dim, 1 / dim))
    assert best.fun == pytest.approx(gap_slope(dim, context), rel=1e-7)
    assert best.x == pytest.approx(constant_step(dim, context), rel=1e-4)


@pytest.mark.parametrize("kind", GUESSES)
@pytest.mark.parametrize(("dim", "context"), SIZES)
def test_gap_and_optimal_matrices(dim, context, kind):
    """Compare with the convex bound, isotropic and general; the matrices attain it and are stationary."""
    m, v, b = guess_of(kind, dim)
    for Sigma, Sigma_w in ((None, None), (covariance(5, dim), covariance(6, dim))):
        risk = risk_of(m, v, b, context, Sigma, Sigma_w)
        bound = risk.convex_bound()
        step = gd_risk(dim, context) if Sigma is None else float(theorem1_risk(Sigma, context, Sigma_w))
        least = step + gap(m, v, b, context, Sigma)
        assert abs(bound.value - least) <= bound.rounding
        assert bound.rounding < 1e-9 * least
        X_KPP = optimal_matrices(m, v, b, context, Sigma, Sigma_w)
        assert float(risk.value(X_KPP)) == pytest.approx(least, rel=1e-11)
        assert float(risk.gradient(X_KPP).norm()) < 1e-10
        if b:
            assert torch.allclose(X_KPP, bound.X_KPP, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 1000), st.sampled_from([0.0, 0.01, 3.0]))
def test_a_trained_guess_closes_the_gap(dim, context, seed, bias):
    """Compare the least risk with the read-out free with the best step from m, for every m and guess."""
    m, v = draw(seed, dim), draw(seed + 1, dim)
    Sigma, Sigma_w = covariance(seed + 2, dim), covariance(seed + 3, dim)
    joint = risk_of(m, v, bias, context, Sigma, Sigma_w).convex_bound(free_direct=True)
    assert joint.value == pytest.approx(float(theorem1_risk(Sigma, context, Sigma_w)), rel=1e-9)


@pytest.mark.parametrize("scale", [30.0, 300.0, 3000.0])
def test_large_prior_mean(scale):
    """Vary the prior mean: the engine works on labels less its part, so that condition and rank do not
    depend on m."""
    m, zero = scale * torch.ones(4, dtype=torch.float64) / 2, torch.zeros(4, dtype=torch.float64)
    risk = risk_of(m, zero, 0.0, 6)
    bound, small = risk.convex_bound(), risk_of(zero, zero, 0.0, 6).convex_bound()
    assert abs(bound.value - gd_risk(4, 6) - gap(m, zero, 0.0, 6)) <= bound.rounding < 1e-9 * bound.value
    assert bound.condition == pytest.approx(small.condition, rel=1e-9)
    assert bound.rank == small.rank
    joint = risk.convex_bound(free_direct=True)
    assert abs(joint.value - gd_risk(4, 6)) <= joint.rounding
    assert risk.best_with_values(eye(5)[:4]).gap < 1e-9
    least = lost_slope(4, 6, 3) * scale**2
    assert least < risk.best_with_values(eye(5)[:3]).gap < 1.5 * least, "not vacuous where m is large"


@pytest.mark.parametrize("kind", GUESSES)
@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 1), (2, 5), (3, 10), (4, 3)])
def test_fewest_heads(dim, context, kind):
    """Attain the bound with H = fewest_heads, by construction and by least squares; no fewer do."""
    m, v, b = guess_of(kind, dim, seed=3)
    risk, X_KPP = risk_of(m, v, b, context), optimal_matrices(m, v, b, context)
    bound, heads = risk.convex_bound(), fewest_heads(m, v, b)
    assert heads == (1 if kind == "prior" else dim)
    assert float(risk.value(X_KPP)) == pytest.approx(bound.value, rel=1e-11)
    assert not X_KPP[:, -1, -1].any(), "with (p, p) empty the value directions e_1 .. e_D suffice"
    one_step = torch.cat([-m, m.new_ones(1)])[None]
    b_HP = one_step if heads == 1 and dim > 1 else eye(dim + 1)[:-1]
    assert b_HP.shape == (heads, dim + 1)
    assert risk.best_with_values(b_HP).gap < 1e-14
    for fewer in range(1, heads):
        start = eye(dim + 1)[:fewer]
        best = risk.best_with_heads(fewer, np.random.default_rng(0), 1, 60, starts=[start])
        assert best.gap >= lost_slope(dim, context, fewer) * guess_error(m, v, b) > 1e-4


@pytest.mark.parametrize(("dim", "context"), [(2, 1), (3, 4), (5, 10), (4, 40)])
def test_lost_slope_is_a_constrained_minimum(dim, context):
    """Minimise E<G, X>^2 over X that equal tau on j directions: linear constraints, solved densely."""
    zero = torch.zeros(dim, dtype=torch.float64)
    risk = risk_of(zero, zero, 0.0, context)
    space, P = risk.space, dim + 1
    form_SS = space.form(second_gram(LabelMoments(eye(dim), eye(dim), zero, 0.0), context)).numpy()
    for heads in range(dim + 2):
        lost = max(dim - heads, 0)
        pairs = torch.zeros(P, P, dtype=torch.bool)
        pairs[:lost, :lost] = True
        fixed = pairs[space.rows, space.columns].numpy()
        x_S = space.coordinates(constant_step(dim, context) * torch.diag(pairs.diagonal().double())).numpy()
        x_S[~fixed] = np.linalg.solve(form_SS[~fixed][:, ~fixed], -form_SS[~fixed][:, fixed] @ x_S[fixed])
        assert lost_slope(dim, context, heads) == pytest.approx(x_S @ form_SS @ x_S, rel=1e-10, abs=1e-15)
