import numpy as np
import pytest
import torch

from icl.checks.giannou.mask_floor import MaskFloor
from icl.checks.giannou.support.unmasked_attention import (
    least_by_spectrum,
    quadratic_form,
    response,
    spectra,
    unmasked_risk,
)
from icl.models import LinearTransformer, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression
from tests.checks.asking import held


def test_floor_of_five_dimensions():
    finding = held(MaskFloor(samples=2000, layers=2))
    assert finding.measured["floor"] == pytest.approx(0.0217, abs=4e-4)
    assert finding.measured["floor_lower"] <= finding.measured["floor"]
    assert finding.measured["masked_by_layers"][1] == pytest.approx(0.0064, abs=6e-4)


def test_the_risk_by_sampling():
    rng, n, D = np.random.default_rng(0), 8, 3
    X = rng.standard_normal((40_000, D, n + 1))
    lam, U = np.linalg.eigh(X @ X.swapaxes(1, 2) / n)
    g, x = np.sqrt(lam) / (1 + lam), np.einsum("bij,bi->bj", U, X[:, :, -1])
    e = x * (1 - g + ((g * x**2 / lam).sum(1) / n)[:, None])
    by_sampling = (e**2).mean(1)
    exact = unmasked_risk(torch.from_numpy(g), torch.from_numpy(lam), n).numpy()
    assert by_sampling.mean() == pytest.approx(exact.mean(), abs=5 * by_sampling.std() / 200)


def test_the_quadratic_form_is_the_risk_and_its_minimum():
    rng = np.random.default_rng(1)
    lam, g = torch.from_numpy(rng.uniform(0.2, 2, (6, 4))), torch.from_numpy(rng.standard_normal((6, 4)))
    F, f, c = quadratic_form(lam, 9)
    by_form = torch.einsum("bi,bij,bj->b", g, F, g) - 2 * (f * g).sum(1) + c
    torch.testing.assert_close(by_form, unmasked_risk(g, lam, 9), rtol=1e-12, atol=1e-12)
    assert bool((least_by_spectrum(lam, 9) <= by_form).all())
    assert float(torch.linalg.eigvalsh(F).min()) > 0


def test_spectra_have_wisharts_moments():
    lam = spectra(np.random.default_rng(2), 20_000, 10, 3)
    assert float(lam.sum(1).mean()) == pytest.approx(3, abs=0.03)
    # E tr S^2 = D (1 + (D + 1) / n)
    assert float(lam.square().sum(1).mean()) == pytest.approx(3 * 1.4, abs=0.08)


def test_the_masked_family_is_the_projects_own():
    law = LinearRegression(3, 12, eigenvalues=[1, 1, 1]).law([0])
    prompt = law.token_prompts([generator(0, "check")], 5)
    theta = torch.tensor([0.5, 0.4, 0.3, 0.2, 0.3, 1.1]).double()
    eye = torch.eye(3).double()
    A = -torch.stack([a * eye for a in theta[:3]])[None]
    B = torch.stack([beta / a * eye for a, beta in zip(theta[:2], theta[3:5], strict=True)])[None]
    model = SparseAB(3, 3)
    model.load({"A": A, "B": B})
    got = theta[-1] * LinearTransformer(model, "tokens").predict(prompt)[0].detach()
    for b in range(5):
        x, y = prompt.context_RBNP[0, b, :, :3], prompt.context_RBNP[0, b, :, 3]
        lam, U = torch.linalg.eigh(x.mT @ x / 12)
        w = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
        expected = (U.mT @ w) @ (response(theta, lam, 3) * (U.mT @ prompt.query_RBP[0, b, :3]))
        assert float(got[b]) == pytest.approx(float(expected), rel=1e-9)
