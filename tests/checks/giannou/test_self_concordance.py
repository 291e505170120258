"""Proposition 3.3, Lemma B.8, Theorem 5.4 and appendix E.1."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from icl.algorithms import LogisticLoss
from icl.checks.giannou import appendixE_1, proposition3_3, theorem5_4
from icl.checks.giannou.appendixE_1 import AppendixE1
from icl.checks.giannou.lemmaB_8 import LemmaB8
from icl.checks.giannou.proposition3_3 import Proposition3_3, ratio, supremum_of_ratio
from icl.checks.giannou.theorem5_4 import Theorem5_4, guaranteed_decrease
from icl.errors import InputError


@pytest.mark.parametrize("mu", [1e-4, 0.1, 3.0, 100.0])
def test_the_supremum_is_one_of_a_single_variable(mu):
    by_scipy = minimize_scalar(
        lambda q: -q * np.sqrt(1 - 4 * q) / (q + mu) ** 1.5,
        bounds=(0, 0.25),
        options={"xatol": 1e-14},
        method="bounded",
    )
    assert supremum_of_ratio(mu) == pytest.approx(-by_scipy.fun, rel=1e-9)
    finding = Proposition3_3(mu=mu, samples=1).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert finding.measured["supremum"] < finding.measured["claim_standard"] < finding.measured["claim_M_f"]


def test_the_ratio_against_autograd():
    rng = np.random.default_rng(0)
    A, x, u = rng.standard_normal((4, 3)), rng.standard_normal(3), rng.standard_normal(3)
    u /= np.linalg.norm(u)
    loss = LogisticLoss(torch.from_numpy(A)[None], torch.ones(1, 4).double(), 0.3)
    derivative = t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    derivative = loss.value((torch.from_numpy(x) + t * torch.from_numpy(u))[None])[0]
    orders = []
    for _ in range(3):
        (derivative,) = torch.autograd.grad(derivative, t, create_graph=True)
        orders.append(float(derivative))
    assert ratio(A, x, u, 0.3) == pytest.approx(abs(orders[2]) / orders[1] ** 1.5, rel=1e-10)


def test_a_larger_loss_is_not_so_concordant(monkeypatch):
    monkeypatch.setattr(proposition3_3, "supremum_of_ratio", lambda mu: 0.9 * supremum_of_ratio(mu))
    assert Proposition3_3(samples=1).measure().verdict == "fails"
    monkeypatch.setattr(proposition3_3, "supremum_of_ratio", lambda mu: 5 * supremum_of_ratio(mu))
    assert Proposition3_3(samples=1).measure().verdict == "fails"


@pytest.mark.parametrize("mu", [1e-3, 0.1, 10.0])
def test_lemma_b8_is_off_by_a_factor_of_two(mu):
    finding = LemmaB8(mu=mu, samples=100).measure()
    assert finding.verdict == "fails" and finding.control.rejected
    assert 1.99 < finding.measured["lambda_over_printed_bound"] <= 2 + 1e-9
    for name in ("gradient_over_bound", "hessian_over_bound", "lambda_lower_bound_over_lambda"):
        assert finding.measured[name] <= 1 + 1e-12


@pytest.mark.parametrize(
    "settings", [{"mu": 0.1}, {"mu": 0.25, "dim": 2, "context": 3}, {"mu": 10.0, "seed": 1}]
)
def test_theorem5_4(settings):
    finding = Theorem5_4(samples=24, **settings).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    measured = finding.measured
    assert measured["min_decrease_phase1"] >= measured["guaranteed_decrease"] > 0.01
    assert measured["min_decrease_exact"] >= 0.25 - np.log(1.25)
    assert measured["steps_in_phase1"] > 20 and measured["steps_in_phase2"] > 20


def test_guaranteed_decrease_is_above_a_hundredth_for_every_mu():
    assert min(guaranteed_decrease(mu) for mu in np.geomspace(1e-4, 1e4, 400)) > 0.01


def test_errors_too_large_fail(monkeypatch):
    right = theorem5_4.largest_error
    monkeypatch.setattr(theorem5_4, "constant_times_error", lambda mu, eps_B: 0 * eps_B)
    assert Theorem5_4(samples=8).measure().verdict == "fails"
    monkeypatch.undo()
    monkeypatch.setattr(theorem5_4, "largest_error", lambda mu, x_BD: 300 * right(mu, x_BD))
    assert Theorem5_4(samples=8).measure().verdict in ("fails", "undecided")


def test_too_few_steps_are_undecided():
    assert Theorem5_4(samples=8, steps=3).measure().verdict == "undecided"


def test_appendix_e1():
    finding = AppendixE1(200).measure()
    assert finding.verdict == "fails" and finding.control.rejected
    assert finding.measured["h_at_sixth"] == pytest.approx(-0.0046091, abs=1e-6)
    assert finding.measured["h_at_sixth_own_eps_upper"] < -0.01
    assert finding.measured["decreasing_certificate"] > 0
    assert finding.measured["largest_derivative"] == pytest.approx(-1 / 7, abs=1e-3)


def test_h_and_its_derivative_by_differences():
    x, c, z = np.array([0.3, 0.8, 2.0]), np.array([0.0, -0.05, 0.04]), np.zeros(3)
    difference = (appendixE_1._h(x + 1e-6, c, z) - appendixE_1._h(x - 1e-6, c, z)) / 2e-6
    delta = np.sqrt(x**2 / (1 + x) ** 2 - 2 * c / (1 + x))
    s, u = x / (1 + x), 1 / (1 + x)
    G = 1 + s - 2 * (s + c) / (s * (1 + u)) * u + ((s + c) / (s * (1 + u))) ** 2 * u**3 + 2 * c
    assert (difference < 0).all() and (G > 0).all()
    D = 1 - (s + c) / (s * (1 + u)) * u**2
    np.testing.assert_allclose(u * G, D**2 - delta**2, rtol=1e-12)
    np.testing.assert_allclose(
        difference, -(x**2 + 2 * x) / (1 + x) ** 2 * (D - delta) / (1 - delta), rtol=1e-6
    )


def test_refuses():
    for check in (Proposition3_3, LemmaB8, Theorem5_4):
        for mu in (0, -1.0, float("nan")):
            with pytest.raises(InputError, match=r"check\.mu"):
                check(mu=mu)
    with pytest.raises(InputError, match=r"check\.context"):
        Theorem5_4(dim=5, context=4)
