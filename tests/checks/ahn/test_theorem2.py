import numpy as np
import pytest
import torch

from icl.checks.ahn.support import two_layers
from icl.checks.ahn.theorem2 import Theorem2
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.expected_traces import sparse_a_risk
from tests.checks.asking import held


@pytest.fixture
def coarse(monkeypatch):
    """Draw prompts enough to see an error of 4 %; tests/test_smoke.py has the check's own number."""
    monkeypatch.setattr(two_layers, "PRECISION", 0.006)


def alternating_minimum(dim, context, rng):
    """Minimise by a second method: the risk is quadratic in each A_l, exact half steps from a random
    diagonal pair."""
    eye = torch.eye(dim, dtype=torch.float64)

    def risk(a_LD):
        return sparse_a_risk(a_LD.diag_embed(), eye, eye, context)

    a_LD = torch.from_numpy(rng.uniform(0, 1, (2, dim)))
    for _ in range(60):
        for layer in range(2):
            zero = a_LD.clone()
            zero[layer] = 0
            units = zero[None].repeat(dim, 1, 1)
            units[range(dim), layer, range(dim)] = 1
            pairs = zero[None, None].repeat(dim, dim, 1, 1)
            pairs[:, :, layer] = eye[:, None] + eye[None]
            c, f, g = risk(zero), risk(units), risk(pairs)
            H = g - f[:, None] - f[None] + c  # of c + b a + a H a / 2
            a_LD[layer] = torch.linalg.solve(H, -(f - c - H.diagonal() / 2))
    return float(risk(a_LD))


@pytest.mark.parametrize(("dim", "context"), [(2, 1), (3, 12)])
def test_holds_and_rejects_its_control(coarse, dim, context):
    measured = held(Theorem2(dim, context, starts=1), margin=1000).measured
    for name in ("best_scalar", "best_diagonal", "best_symmetric", "best_unrestricted"):
        assert measured[name] == pytest.approx(measured["best_symmetric"], abs=1e-11)
    assert alternating_minimum(dim, context, np.random.default_rng(0)) == pytest.approx(
        measured["best_diagonal"], rel=1e-9
    )


def test_tokens_reject_pairings_and_polynomial_that_are_wrong_together(monkeypatch):
    monkeypatch.setattr(two_layers, "PRECISION", 0.004)
    monkeypatch.setattr(two_layers, "sparse_a_risk", lambda A, S, W, n: sparse_a_risk(A, S, W, n + 1))
    monkeypatch.setattr(two_layers, "InvariantRisk", lambda d, n, layers: InvariantRisk(d, n + 1, layers))
    measured = (finding := Theorem2(2, 5, starts=1).measure()).measured
    assert measured["scalar_risk_by_pairings_minus_polynomial"] < 1e-12
    assert finding.verdict == "fails" and finding.bound.of == "token_z"
    assert measured["free_z"] > measured["free_z_bound"]
