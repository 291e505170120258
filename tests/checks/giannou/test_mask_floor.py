import numpy as np
import pytest
import torch

from icl.checks.giannou.mask_floor import MaskFloor
from icl.checks.giannou.support import step_sizes, unmasked_attention
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
from tests.checks.asking import Mutant, blinded, held, holds, seen


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


@holds(
    MaskFloor,
    {"dim": 2, "context": 1000},  # one layer with a mask is above the floor, two are below
    {"dim": 1, "context": 2},
    {"dim": 3, "context": 4},
    {"dim": 1, "context": 5000, "seed": 3},
    samples=500,
    layers=1,
)
def test_the_control_takes_the_layers_it_needs(check, finding):
    assert len(finding.measured["unmasked_by_layers"]) == 1
    assert len(finding.measured["masked_by_layers"]) > 1


def one_layer(right, spectra_BD, risk, layers, below=None):
    """The masked family at one layer, whatever the floor."""
    return right(spectra_BD, risk, 1)


test_a_wrong_formula_or_a_mask_is_seen = seen(
    MaskFloor,
    *(
        Mutant(unmasked_attention, name, wrong, of=of)
        for name, wrong, of in (
            ("unmasked_risk", lambda right, g, s, n: (1 - g).square().mean(-1), "integrals_off"),
            ("unmasked_risk", lambda right, g, s, n: right(g, s, n + 1e-6), "integrals_off"),
            ("unmasked_stack", lambda right, a, b, d, n: right(a * 1.001, b, d, n), "token_error"),
            ("response", lambda right, theta, s, L: 0.999 * right(theta, s, L), "token_error"),
            ("quadratic_form", lambda right, *of: (1.01 * right(*of)[0], *right(*of)[1:]), ""),
            ("quadratic_form", lambda right, *of: (*right(*of)[:2], 1.01 * right(*of)[2]), "least_off"),
            ("least_by_spectrum", lambda right, *of: 0.99 * right(*of), "least_off"),
        )
    ),
    *(
        Mutant(unmasked_attention, "spectra", wrong, "undecided", "trace_z")
        for wrong in (
            lambda right, rng, samples, tokens, d: right(rng, samples, 2 * tokens, d),
            lambda right, *of: 1.05 * right(*of),
        )
    ),
    Mutant(
        unmasked_attention, "risk_of_best_function", lambda right, *of: 0.9 * right(*of), "undecided", "floor"
    ),
    Mutant(
        unmasked_attention, "risk_of_best_function", lambda right, *of: 2 * right(*of), "undecided", "floor_z"
    ),
    blinded(step_sizes, "risks_by_layers", one_layer),
    samples=500,
    layers=2,
)
