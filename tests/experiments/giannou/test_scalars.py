"""Tests of the scalar family: its error against layers of tokens, its derivatives against differences, its
best points against known ones.
"""

import numpy as np
import pytest
import torch

from icl.algorithms import NewtonIteration
from icl.checks.giannou.support.unmasked_attention import least_by_spectrum, spectra, unmasked_risk
from icl.experiments.giannou.scalars import exact_problem, family_best, newton_losses, sampled_problem
from icl.models import LSA, LinearTransformer
from icl.random import generator
from icl.tasks import ConditionedRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.giannou.scalar_family import response_and_derivatives, risks

D, N, SIGMAS = 3, 9, 5.0
THETA = np.array([0.25, 0.4, 0.15, 0.9])


def law(**task):
    return ConditionedRegression(D, N, **({"largest": (1.0, 1.0)} | task)).law([0])


def test_derivatives():
    s_X, step = np.linspace(0.1, 2, 5), 1e-6
    theta_V = np.array([0.3, 0.5, 0.8, 0.2, 0.4, 1.1])
    _, dg_VX = response_and_derivatives(theta_V, s_X)
    for v, shift_V in enumerate(step * np.eye(6)):
        high, low = (response_and_derivatives(theta_V + sign * shift_V, s_X)[0] for sign in (1, -1))
        assert np.allclose(dg_VX[v], (high - low) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("task", [{}, {"condition": 4.0, "largest": (1.0, 2.0), "label_noise": 0.5}], ids=str)
def test_risk_is_that_of_the_transformer(mask, task):
    """Compare two routes: spectra, weighted and with w integrated out; prompts with everything sampled."""
    of, prompts = law(**task), 60_000
    problem, _ = sampled_problem(of, mask, 2, 0, "check", prompts)
    share_B = risks(THETA, problem) * prompts
    family = LSA(D, 2, 1, mask=mask, scalars=THETA.tolist(), init_std=0.0)
    family.initialise([0])
    prompt = of.gram_prompts([generator(1, "check")], prompts)
    error_B = (LinearTransformer(family).predict(prompt) - prompt.target_RB)[0].detach().square().numpy() / D
    stderr = np.hypot(share_B.std(), error_B.std()) / prompts**0.5
    assert abs(share_B.mean() - error_B.mean()) < SIGMAS * stderr < 0.1 * error_B.mean()


@pytest.mark.parametrize("largest", [(1.0, 1.0), (1.0, 9.0)])
def test_exact_rule(largest):
    of = law(largest=largest, label_noise=0.5)
    exact, (drawn, _) = exact_problem(of, 2), sampled_problem(of, True, 2, 0, "check", 40_000)
    theta_V = THETA / np.mean(largest)
    share_B = risks(theta_V, drawn) * 40_000
    assert exact is not None
    assert abs(risks(theta_V, exact).sum() - share_B.mean()) < SIGMAS * share_B.std() / 200
    assert exact_problem(law(condition=2.0), 2) is None


def test_best_points():
    """Compare best points: with a mask not above ahn's search without c, nor below any polynomial; without
    not below the floor."""
    for layers in (1, 2, 3):
        with_b = InvariantRisk(D, N, layers, with_b=True)
        searched = with_b.minimise(generator(0, "search"), 16)[0].risk / D
        found = family_best(law(), True, list(range(1, layers + 1)), 0, 200, 200)["risk_L"][-1]
        assert float(with_b.lower_bound()) / D * (1 - 1e-9) < found < searched * (1 + 1e-9)
    deep = family_best(law(), True, [3, 4, 6], 0, 4000, 400)
    assert abs(deep["risk_L"][0] - found) < 1e-9 * found and (deep["error_L"] > 0).tolist() == [
        False,
        False,
        True,
    ]
    assert deep["risk_L"][1] < found and np.isfinite(deep["risk_L"][2])
    assert deep["theta_LV"][2, [5, 10]].tolist() == [0, 0] and np.isnan(deep["theta_LV"][0, 6:]).all()
    own = family_best(law(), False, [1, 2], 0, 20_000, 1000)
    s_BD = spectra(generator(3, "check"), 20_000, N + 1, D) * (N + 1) / N
    floor_B = least_by_spectrum(s_BD, N)
    assert own["risk_L"][1] < own["risk_L"][0]
    assert own["risk_L"][1] > float(floor_B.mean()) - SIGMAS * float(floor_B.std()) / 20_000**0.5
    g_BD = torch.from_numpy(response_and_derivatives(own["theta_LV"][1], s_BD.numpy())[0])
    risk_B = unmasked_risk(g_BD, s_BD, N)
    error = np.hypot(own["error_L"][1], float(risk_B.std()) / 20_000**0.5)
    assert abs(own["risk_L"][1] - float(risk_B.mean())) < SIGMAS * error


def test_newton_by_the_spectrum_is_newton():
    of, prompts = law(condition=4.0, largest=(1.0, 2.0), label_noise=0.3), 40_000
    found = newton_losses(of, 0, prompts, 2)
    prompt = of.gram_prompts([generator(1, "check")], prompts)
    for name, order, start in (("transpose_2", 2, "transpose"), ("identity_3", 3, "identity")):
        for step in (0, 2):
            predicted_RB = NewtonIteration(order, step, start).predict(prompt)
            error_B = (predicted_RB - prompt.target_RB)[0].square().numpy() / D
            stderr = np.hypot(found[name][step].std(), error_B.std()) / prompts**0.5
            assert abs(found[name][step].mean() - error_B.mean()) < SIGMAS * stderr
