import math

import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie.support import yq_lsa
from icl.checks.xie.support.best_step import fitted_slope
from icl.checks.xie.theorem4 import Theorem4
from icl.tasks import LinearRegression
from icl.theory.closed_forms import isotropic_step
from tests.checks.asking import elsewhere, held, refuses


def test_a_slope_by_hand():
    slope, error = fitted_slope([1, 10, 100], [(3.0, 0.0), (0.3, 0.003), (0.03, 0.0)])
    assert slope == pytest.approx(-1, abs=1e-14) and error < 1e-14  # the middle one has no weight
    slope, error = fitted_slope([1, 100], [(3.0, 0.03), (0.3, 0.0)])
    assert slope == pytest.approx(-0.5)
    assert error == pytest.approx(0.01 / math.log(100), rel=1e-9)


def law_of(seeds=(0, 4), context=(8, 5), **other):
    settings = {"eigenvalues": [1.0] * 3, "prior_mean": [1, -2, 0.5], "read_out": 1} | other
    return LinearRegression(3, list(context), **settings).law(seeds)


def step_weights(law, scale=1.0, gamma=1.0, dtype=torch.float64):
    """Return one step of descent per seed, P and Q rescaled, with rows of P that do not enter."""
    steps = (isotropic_step(3, context) for context in law.context_R)
    models = [yq_lsa.descent_from(w, eta) for w, eta in zip(law.mean_RD, steps, strict=True)]
    P, Q, v = (torch.cat([m.matrices()[name].detach() for m in models]) for name in "PQv")
    P[:, :, :-1] = 5.0
    return Weights(
        "yq_lsa", {"P": gamma * P.to(dtype), "Q": scale / gamma * Q.to(dtype), "v": v.to(dtype)}, law
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_judges_weights(dtype):
    law = law_of()
    finding = held(Theorem4(), step_weights(law, gamma=-3.0, dtype=dtype))
    assert finding.measured["distance"] < 1e-6 and abs(finding.measured["risk_excess"]) < 1e-6
    assert len(finding.measured["distance_by_seed"]) == 2
    assert Theorem4().judge(step_weights(law, 1.03)).verdict == "holds"
    elsewhere(Theorem4().judge(step_weights(law, 1.2)))
    assert Theorem4().judge(step_weights(law, float("nan"))).verdict == "undecided"


def test_judges_guesses_and_the_worst_seed():
    law = law_of()
    weights = step_weights(law)
    weights.matrices["v"][1, 0, 0, 0] += 0.5
    finding = Theorem4().judge(weights)
    elsewhere(finding)
    assert finding.measured["distance_by_seed"][0] < 1e-12 < 0.05 < finding.measured["distance_by_seed"][1]
    # y_q also enters the keys: what Q's last column makes of it counts as part of X_k
    weights = step_weights(law)
    weights.matrices["Q"][..., :3] -= weights.matrices["v"].mT.mT * 0.7
    weights.matrices["Q"][..., 3] += 0.7
    finding = Theorem4().judge(weights)
    assert finding.verdict == "holds" and finding.measured["distance"] < 1e-12


def test_judge_refuses_what_the_theorem_does_not_speak_of():
    good = law_of([0], [8])
    matrices = step_weights(good).matrices
    others = (
        {"read_out": -1},
        {"label_noise": 0.1},
        {"guess_bias": 1.0},
        {"guess_vector": [1, 0, 0]},
        {"eigenvalues": [1, 2, 3]},
        {"task_covariance": [[2, 0, 0], [0, 1, 0], [0, 0, 1]]},
    )
    deep = {"P": matrices["P"].expand(1, 2, 4, 4), "Q": matrices["Q"].expand(1, 2, 4, 4), "v": matrices["v"]}
    takes, about = r"^check\.weights: Theorem 4 takes", r"^check\.weights: Theorem 4 is about family yq_lsa"
    refuses(
        Theorem4(),
        *((Weights("yq_lsa", matrices, law_of([0], [8], **other)), takes) for other in others),
        (Weights("full", matrices, good), about),
        (Weights("yq_lsa", matrices, good, activation="relu"), about),
        (Weights("yq_lsa", deep, good), "weights"),
        (Weights("yq_lsa", {"P": matrices["P"], "Q": matrices["Q"]}, good), "weights"),
    )
