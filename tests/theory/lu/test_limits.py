"""Tests of the limits against integrals over Marchenko and Pastur's law, and of the ridge's root."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

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
# What `ridgeless_icl` and `ridgeless_idg` of the published code return: theory_runs/common.py in the authors'
# repository mletey/incontext-cleanup, commit c6902221, run with NumPy 2.
PUBLISHED = {
    (10, 0.5, 0.5, 0.01): (0.8208492721492245, 0.2463433636506817),
    (3.3, 0.7, 0.3, 0.2): (1.2208504959296391, 0.9580601930311314),
    (7, 2.5, 0.8, 0.4): (3.560818824584523, 3.0194075567687046),
    (0.4, 0.08, 0.05, 1.5): (2.615640104714328, 2.4865310916888497),
    (1000, 3, 0.97, 0.01): (0.566373829916758, 0.392441660828637),
    (100, 0.2, 0.5, 0.1): (6.565837328222333, 0.2709366546242871),
    (6.15, 0.3, 0.5, 0.5): (2.828316578641844, 1.4964759629705755),
    (10, 0.5, 2, 0.01): (0.8911638627479329, 0.11239990342761609),
    (1.7, 3, 1.6, 0.3): (2.066110804421694, 1.8594059722471785),
    (40, 0.3, 8, 0): (0.7379532798455668, 0.008480970170012083),
    (0.2, 30, 1.02, 2): (149.74201641645095, 149.71928615567018),
    (25, 1.1, 20, 0.5): (0.7258317412660026, 0.5776644444929805),
    (2.35, 0.25, 20, 0.5): (1.4376811414302013, 0.66611846691967),
}
# and `ridge_icl` (e_ICL), by the setting and lambda
PUBLISHED_RIDGE = {
    (10, 0.5, 0.5, 0.01, 1e-5): 0.820821079587735,
    (10, 0.5, 0.5, 0.01, 0.1): 0.7302703923114603,
    (10, 0.5, 2, 0.01, 1e-5): 0.8909704194668591,
    (10, 0.5, 2, 0.01, 1): 0.6657424168477785,
    (3.3, 0.7, 0.3, 0.2, 1): 1.1142154955007266,
    (7, 2.5, 0.8, 0.4, 1e-3): 3.4435820818475964,
    (0.4, 0.08, 0.05, 1.5, 0.1): 2.615454799752876,
    (1000, 3, 0.97, 0.01, 0.1): 0.21880296252346632,
    (1.7, 3, 1.6, 0.3, 0.1): 1.5045606526527828,
    (40, 0.3, 8, 0, 30): 0.9455038104174933,
    (0.2, 30, 1.02, 2, 0.1): 19.85148557011569,
    (25, 1.1, 20, 0.5, 1e-3): 0.7251776329861273,
    (2.35, 0.25, 20, 0.5, 1e-5): 1.437678440740859,
    (6.15, 0.3, 0.5, 0.5, 1): 1.4370586073559495,
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


@pytest.mark.parametrize("at", PUBLISHED)
def test_the_ridgeless_errors_are_those_of_the_published_code(at):
    assert (Limit(*at).icl, Limit(*at).idg) == pytest.approx(PUBLISHED[at], rel=1e-13)


@pytest.mark.parametrize("at", PUBLISHED_RIDGE)
def test_the_errors_with_a_ridge_are_those_of_the_published_code(at, monkeypatch):
    """Compare to 1e-6, and to 1e-12 at its root, which it rounds to six decimals."""
    published, limit, ridge = PUBLISHED_RIDGE[at], Limit(*at[:4]), at[4]
    assert limit.ridge(ridge)[0] == pytest.approx(published, rel=1e-6)
    rounded = round(limit.effective_ridge(ridge), 6)
    monkeypatch.setattr(Limit, "effective_ridge", lambda self, ridge: rounded)
    assert limit.ridge(ridge)[0] == pytest.approx(published, rel=1e-12)


def test_the_published_code_takes_for_a_root_where_its_search_stopped(monkeypatch):
    """At lambda = 1e-6 none of its hundred starts converges; its 0.6346 is the formula at 0.101109, where the
    equation's two sides differ by 1.3. Its own ridgeless value is 0.8912."""
    limit = Limit(10, 0.5, 2, 0.01)
    assert limit.ridge(1e-6)[0] == pytest.approx(PUBLISHED[10, 0.5, 2, 0.01][0], rel=1e-4)
    monkeypatch.setattr(Limit, "effective_ridge", lambda self, ridge: 0.101109)
    assert limit.ridge(1e-6)[0] == pytest.approx(0.6345972326627006, rel=1e-12)


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
