"""Tests of the limits against integrals over Marchenko and Pastur's law, and of the ridge's root."""

import math

import numpy as np
import pytest

from icl.theory.lu.limits import Limit, resolvent

# (alpha, kappa, tau, rho)
SETTINGS = [
    (10, 0.5, 0.5, 0.01),
    (3.3, 0.7, 0.3, 0.2),
    (7, 2.5, 0.8, 0.4),
    (0.4, 0.08, 0.05, 1.5),
    (1000, 3, 0.97, 0.01),
    (10, 0.5, 2, 0.01),
    (1.7, 3, 1.6, 0.3),
    (40, 0.3, 8, 0),
    (0.2, 30, 1.02, 2),
    (6, math.inf, 0.6, 0.1),
    (6, math.inf, 1.4, 0.1),
    (6, 0.6, math.inf, 0.1),
]
RIDGES = [1e-9, 1e-5, 0.1, 1, 30]


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

    low, high = 0.0, ridge + (1 + x) / tau
    if ridge == 0 and tau > 1:
        high = 0.0
    for _ in range(200):  # the prompts that the features use up, by bisection
        e = (low + high) / 2
        used = mean((x + r) / (x + r + e)) / tau + (ridge / e if ridge else 0)
        low, high = (e, high) if used > 1 else (low, e)
    e, b = (low + high) / 2, x + r
    Gamma = r / (b + e)
    old = 1 + rho + mean(b * Gamma**2 - 2 * r * Gamma)
    old /= 1 - mean((b / (b + e)) ** 2) / tau
    new = 1 + rho + mean((1 + x) * Gamma**2 - 2 * Gamma) + old / tau * (1 + x) * mean(b / (b + e) ** 2)
    return new, old, e


@pytest.mark.parametrize("at", SETTINGS)
def test_the_ridgeless_errors_are_those_of_the_integrals(at):
    new, old, _ = equivalent(*at, 0)
    assert Limit(*at).icl == pytest.approx(new, rel=1e-10)
    assert Limit(*at).idg == pytest.approx(old, rel=1e-10)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("at", [*SETTINGS[:-1], (10, 0.5, 1, 0.01), (2, 5, 1, 0)])
def test_the_errors_with_a_ridge_are_those_of_the_integrals(at, ridge):
    *both, e = equivalent(*at, ridge)
    assert Limit(*at).ridge(ridge) == pytest.approx(both, rel=1e-9)
    assert Limit(*at).effective_ridge(ridge) == pytest.approx(e, rel=1e-10)


@pytest.mark.parametrize("ridge", RIDGES[1:])
@pytest.mark.parametrize("at", SETTINGS[:-1])
def test_the_root_is_the_only_one_and_that_of_a_polynomial(at, ridge):
    """Find all roots: with u = (1 - tau) e + tau ridge, M = u / e^2 solves the quadratic equation of
    M_kappa(e + x*)."""
    limit = Limit(*at)
    tau, more, x = limit.tau, 1 / limit.kappa, limit.x
    e, u = np.poly1d([1, 0]), np.poly1d([1 - tau, tau * ridge])
    quartic = e**4 - (e + x + 1 - more) * u * e**2 - more * (e + x) * u**2
    roots = [z.real for z in quartic.roots if abs(z.imag) < 1e-9 * abs(z) and z.real > 0]
    found = limit.effective_ridge(ridge)
    assert min(abs(root / found - 1) for root in roots) < 1e-10

    def excess(e):
        return 1 - tau + tau * ridge / e - e * resolvent(limit.kappa, e + x)

    beyond = np.geomspace(1e-6, 1e6, 400) * found
    assert (np.diff([excess(e) for e in beyond]) <= 0).all()
    assert excess(found * (1 - 1e-9)) > 0 > excess(found * (1 + 1e-9))


def test_a_small_ridge_is_none_away_from_the_threshold():
    for at in SETTINGS[:-1]:
        limit = Limit(*at)
        assert limit.ridge(1e-11) == pytest.approx((limit.icl, limit.idg), rel=1e-6)
    assert Limit(10, 0.5, 1, 0.01).icl == Limit(10, 0.5, 1, 0.01).idg == math.inf


def test_new_tasks_are_old_ones_where_every_prompt_has_its_own():
    for tau in (0.4, 1.7):
        limit = Limit(6, math.inf, tau, 0.1)
        assert limit.icl == pytest.approx(limit.idg) and limit.ridge(0.3)[0] == pytest.approx(
            limit.ridge(0.3)[1]
        )


def test_the_resolvent_keeps_its_digits_where_few_tasks_and_many_examples_cancel():
    """Take few tasks, which leave 1 - kappa of the directions without any: M(x) is about (1 - kappa) / x."""
    assert resolvent(0.3, 1e-12) * 1e-12 == pytest.approx(0.7, rel=1e-11)
    assert resolvent(4, 1e-12) == pytest.approx(4 / 3, rel=1e-11)
