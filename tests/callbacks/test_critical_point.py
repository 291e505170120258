"""Tests of exact gradient norms against finite differences, and of sampled ones against exact ones."""

import numpy as np
import pytest
import torch

from icl.callbacks import critical_point
from icl.callbacks.critical_point import CriticalPoint
from icl.models import Full, LinearTransformer, MultiHead, SparseA, YqLSA
from icl.random import generator
from icl.tasks import LinearRegression, LinearRegressionLaw
from icl.tasks.exact import exact_risk

SIGMAS = 5.0
NOISY = {"dim": 2, "context": [3, 7], "label_noise": 0.3, "prior_mean": [0.5, -1.0]}
GUESS = {"guess_vector": [0.3, -0.8], "guess_bias": 0.6}
INVERSE = {"dim": 2, "context": 5, "eigenvalues": [1.0, 0.25], "task_covariance": "inverse"}
CASES = {
    "sparse_a": (SparseA(2, 3, 0.2), INVERSE),
    "full": (Full(2, 1, 0.2), NOISY),
    "heads, a guess, two contexts": (MultiHead(2, 1, 2, 0.2), NOISY | GUESS),
    "trained guess beside a given one": (YqLSA(2, 1, 0.2), NOISY | GUESS | {"read_out": 1}),
}


def model_and_law(name: str) -> tuple[LinearTransformer, LinearRegressionLaw]:
    family, task = CASES[name]
    family.initialise([0, 1])
    return LinearTransformer(family), LinearRegression(**task).law([0, 1])


@pytest.mark.parametrize("name", CASES)
def test_exact_gradient_norms_against_finite_differences(name: str) -> None:
    model, law = model_and_law(name)
    norms = CriticalPoint(model, law, [0, 1], 64).measure(model, 0)
    assert "risk_estimate" not in norms and (norms["gradient_norm_stderr"] == 0).all()
    risk, h, total = exact_risk(model, law), 1e-6, torch.zeros(2).double()
    for matrix, tensor in model.parametrization.matrices().items():
        flat = tensor.data.view(2, -1, *tensor.shape[-2:])
        for i in range(flat.shape[1]):
            square = torch.zeros(2).double()
            for a in range(flat.shape[2]):
                for b in range(flat.shape[3]):
                    flat[:, i, a, b] += h
                    up = risk(model).detach()
                    flat[:, i, a, b] -= 2 * h
                    down = risk(model).detach()
                    flat[:, i, a, b] += h
                    square += ((up - down) / (2 * h)) ** 2
            assert torch.allclose(norms[f"gradient_norm_{matrix}{i}"], square.sqrt(), rtol=1e-6, atol=1e-7)
            total += square
    assert torch.allclose(norms["gradient_norm"], total.sqrt(), rtol=1e-6)


def test_sampled_gradient_norms_agree_with_exact_ones() -> None:
    """Sample for a model that has an exact norm."""
    model, law = model_and_law("sparse_a")
    critical = CriticalPoint(model, law, [0, 1], 60_000)
    exact = critical.measure(model, 3)
    critical.exact = None
    sampled = critical.measure(model, 3)
    exact["risk_estimate"] = exact_risk(model, law)(model)
    for name in ("risk_estimate", "gradient_norm", "gradient_norm_A0", "gradient_norm_A2"):
        error_R = sampled[f"{name}_stderr"]
        assert ((sampled[name] - exact[name]).abs() < SIGMAS * error_R).all(), name
        assert (error_R < 0.1 * exact[name]).all(), name
    again = critical.measure(model, 3)
    other = critical.measure(model, 4)
    assert torch.equal(again["gradient_norm"], sampled["gradient_norm"])
    assert not torch.equal(other["gradient_norm"], sampled["gradient_norm"])


def test_prompts_are_those_of_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    model, law = model_and_law("sparse_a")
    critical, roles = CriticalPoint(model, law, [0, 1], 32), []
    critical.exact = None

    def recorded(seed: int, role: str, step: int = 0) -> np.random.Generator:
        roles.append((seed, role, step))
        return generator(seed, role, step)

    monkeypatch.setattr(critical_point, "generator", recorded)
    critical.measure(model, 3)
    plain = [
        (0, "check", 3),
        (1, "check", 3),
    ]  # batches of the law's own prompts, beside those that show its tail
    assert roles == [(0, "eval", 3), (1, "eval", 3), *plain]
