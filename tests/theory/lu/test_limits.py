"""Tests of the limits against integrals over Marchenko and Pastur's law, and the published code."""

import math

import numpy as np
import pytest
from flint import ctx, fmpq
from scipy.optimize import brentq

from icl.theory.lu.limits import Limit, gap_of_long_prompts, plotted
from icl.theory.rationals import rational

# (alpha, kappa, tau, rho)
SETTINGS = [
    (10, 0.5, 0.5, 0.01),
    (7, 2.5, 0.8, 0.4),
    (0.4, 0.08, 0.05, 1.5),
    (10, 0.5, 2, 0.01),
    (1.7, 3, 1.6, 0.3),
    (40, 0.3, 8, 0),
    (6, math.inf, 0.6, 0.1),
    (6, math.inf, 1.4, 0.1),
    (6, 0.6, math.inf, 0.1),
]
RIDGES = [1e-9, 1e-5, 0.1, 1, 30]
# What `ridgeless_icl` and `ridgeless_idg` of the published code return: theory_runs/common.py in the authors'
# repository mletey/incontext-cleanup, commit c6902221, run with NumPy 2.
PUBLISHED = {
    (10, 0.5, 0.5, 0.01): (0.8208492721492245, 0.2463433636506817),
    (7, 2.5, 0.8, 0.4): (3.560818824584523, 3.0194075567687046),
    (0.4, 0.08, 0.05, 1.5): (2.615640104714328, 2.4865310916888497),
    (10, 0.5, 2, 0.01): (0.8911638627479329, 0.11239990342761609),
    (1.7, 3, 1.6, 0.3): (2.066110804421694, 1.8594059722471785),
    (40, 0.3, 8, 0): (0.7379532798455668, 0.008480970170012083),
}


def law(kappa, count=20_000):
    """Return values and weights of the law of R's eigenvalues, by Gauss and Chebyshev's rule."""
    if math.isinf(kappa):
        return np.ones(1), np.ones(1)
    low, high = (1 - kappa**-0.5) ** 2, (1 + kappa**-0.5) ** 2
    angle = np.arange(1, count + 1) * np.pi / (count + 1)
    r = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    weight = ((high - low) / 2 * np.sin(angle)) ** 2 / (count + 1) / 2 * kappa / r
    return (r, weight) if kappa >= 1 else (np.append(r, 0), np.append(weight, 1 - kappa))


def equivalent(alpha, kappa, tau, rho, ridge):
    """Return (e_ICL, e_IDG, e) of ridge regression on d^2 Gaussian features of covariance x* + R: the weights
    that noise-free equations give, and their variance, which is that of the errors in pretraining."""
    r, weight = law(kappa)
    x = (1 + rho) / alpha

    def mean(values):
        return float(weight @ np.broadcast_to(values, r.shape))

    def excess(e):  # of the prompts that the features use up
        return mean((x + r) / (x + r + e)) / tau + (ridge / e if ridge else 0) - 1

    high = (ridge + (1 + x) / tau) * (1 + 1e-9)
    e = 0.0 if ridge == 0 and tau > 1 else brentq(excess, ridge, high, xtol=1e-300, rtol=1e-15)
    b = x + r
    Gamma = r / (b + e)
    old = 1 + rho + mean(b * Gamma**2 - 2 * r * Gamma)
    old /= 1 - mean((b / (b + e)) ** 2) / tau
    new = 1 + rho + mean((1 + x) * Gamma**2 - 2 * Gamma) + old / tau * (1 + x) * mean(b / (b + e) ** 2)
    return new, old, e


@pytest.mark.parametrize("at", SETTINGS)
def test_the_ridgeless_errors_are_those_of_the_integrals(at):
    new, old, _ = equivalent(*at, 0)
    assert ridgeless(at) == pytest.approx((new, old), rel=1e-10)
    assert plotted(*at) == pytest.approx((new, old), rel=1e-10)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("at", [*SETTINGS[:-1], (10, 0.5, 1, 0.01), (2, 5, 1, 0)])
def test_the_errors_with_a_ridge_are_those_of_the_integrals(at, ridge):
    *both, e = equivalent(*at, ridge)
    assert plotted(*at, ridge) == pytest.approx(both, rel=1e-9)
    assert float(Limit.at(*at).effective_ridge(rational(ridge))) == pytest.approx(e, rel=1e-10)


@pytest.mark.parametrize("at", PUBLISHED)
def test_the_ridgeless_errors_are_those_of_the_published_code(at):
    assert ridgeless(at) == pytest.approx(PUBLISHED[at], rel=1e-13)


@pytest.mark.parametrize("kappa", ["1/5", "9/10", "1", "5/4", "5"])
def test_the_limit_of_long_prompts_is_that_of_the_formulas(kappa):
    kappa = rational(kappa)
    with ctx.workprec(256):
        far = [Limit.at(fmpq(10) ** k, kappa, math.inf, 0.1) for k in (8, 16)]
        off = [abs(limit.icl - limit.idg - gap_of_long_prompts(kappa)) for limit in far]
        assert off[1] < 1.01e-4 * off[0] < 1e-7


def ridgeless(at):
    limit = Limit.at(*at)
    return float(limit.icl), float(limit.idg)
