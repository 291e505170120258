"""The query's own token: its formulas against tokens, and against moments drawn or written out."""

import numpy as np
import pytest
from flint import fmpq

from icl.theory.giannou.own_token import (
    least_by_spectrum,
    masked_risk,
    masked_risks,
    spectra,
    unmasked_risk,
)
from icl.theory.giannou.scalar_family import response as response_at


def test_the_risk_by_dirichlets_moments_one_by_one():
    rng, n, D = np.random.default_rng(3), 9, 4
    lam, g, m = rng.uniform(0.2, 2, D), rng.standard_normal(D), n + 1

    def moment(*of):
        rising = np.prod([np.prod(0.5 + np.arange(of.count(i))) for i in set(of)])
        return rising / np.prod(m / 2 + np.arange(len(of)))

    total = sum(
        lam[i]
        * (
            (1 - g[i]) ** 2 * moment(i)
            + 2 * (1 - g[i]) * sum(g[j] * moment(i, j) for j in range(D))
            + sum(g[j] * g[k] * moment(i, j, k) for j in range(D) for k in range(D))
        )
        for i in range(D)
    )
    found = unmasked_risk(np.stack([g, 0 * g]), np.stack([lam, lam]), n)
    assert found[0] == pytest.approx(n * total / D, rel=1e-12)


def test_the_least_risk_is_that_of_the_quadratic_form():
    """Fit the form to the risk itself, whose second differences are exact."""
    rng, n, D = np.random.default_rng(1), 9, 4
    lam = rng.uniform(0.2, 2, (1, D))

    def risk(g_D):
        return unmasked_risk(np.asarray(g_D)[None], lam, n)[0]

    eye, zero = np.eye(D), np.zeros(D)
    F = np.array([[risk(a + b) - risk(a) - risk(b) + risk(zero) for b in eye] for a in eye]) / 2
    f = np.array([(risk(-a) - risk(a)) / 4 for a in eye])
    assert least_by_spectrum(lam, n)[0] == pytest.approx(risk(zero) - f @ np.linalg.solve(F, f), rel=1e-10)
    assert np.linalg.eigvalsh(F).min() > 0


def test_spectra_have_wisharts_moments():
    lam = spectra(np.random.default_rng(2), 20_000, 10, 3)
    assert lam.sum(1).mean() == pytest.approx(3, abs=0.03)
    # E tr S^2 = D (1 + (D + 1) / n)
    assert np.square(lam).sum(1).mean() == pytest.approx(3 * 1.4, abs=0.08)


def test_masked_risks():
    # E tr (1 - t S)^2 / d = 1 - 2 t + t^2 (1 + (d + 1) / n), least at t = n / (n + d + 1)
    assert masked_risk([fmpq(1, 3), fmpq(1)], 2, 4) == 1 - fmpq(2, 3) + fmpq(1, 9) * (1 + fmpq(3, 4))
    one, two = masked_risks(2, 4, 2)
    assert fmpq(3, 7) <= one < fmpq(3, 7) + fmpq(1, 10**9)
    lam = spectra(np.random.default_rng(4), 200_000, 4, 2)
    assert float(two.p) / float(two.q) < 0.9 * 3 / 7
    theta = [fmpq(4, 10), fmpq(3, 10), fmpq(1, 10), fmpq(1)]
    terms = (1 - response_at(np.array([0.4, 0.3, 0.1, 1.0]), lam)) ** 2
    risk = masked_risk(theta, 2, 4)
    assert terms.mean() == pytest.approx(float(risk.p) / float(risk.q), abs=5 * terms.mean(1).std() / 447)
