import math
from dataclasses import replace

import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie import theorem4
from icl.checks.xie.support import yq_lsa
from icl.checks.xie.support.best_step import fitted_slope
from icl.checks.xie.theorem4 import Theorem4
from icl.tasks import LinearRegression
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import Mutant, blinded, elsewhere, held, holds, refuses, seen


@holds(
    Theorem4,
    {},
    {"dim": 1, "context": 1},
    {"dim": 1, "context": 7, "prior_mean": [-2]},
    {"dim": 3, "context": 5, "prior_mean": [1, -2, 0.5]},
    {"dim": 2, "context": 10**6},
    {"dim": 4, "prior_mean_norm": 0},
    *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-9, 1e-2, 1e3)),
    {"dim": 5, "prior_mean_norm": 100.0},
    margin=1000,
    of="gradient_norm_best_eta",
)
def test_holds(check, finding):
    measured, D, C = finding.measured, check.dim, check.context
    assert measured["slope"] == pytest.approx(-1, abs=1e-5) and measured["slope_bound"] < 1e-4
    assert measured["gradient_norm_best_eta"] < 1e-6 * min(measured["gradient_norm_by_context"][:1])
    for name in ("risk", "gd_risk", "global_bound"):
        assert measured[name] == pytest.approx(D * (D + 1) / (C + D + 1), rel=1e-6)
    assert measured["best_eta"] == pytest.approx(C / (C + D + 1))
    assert measured["contexts"] == [C * 2**k for k in range(7)]
    products = [
        C * norm for C, norm in zip(measured["contexts"], measured["gradient_norm_by_context"], strict=True)
    ]
    assert products == pytest.approx([products[0]] * 7, rel=1e-4)


def lower_bound(right, risk, free_direct=False):
    """As if some guess and heads did better than descent."""
    found = right(risk, free_direct)
    object.__setattr__(found, "value", found.value - 1e-9)
    return found


def wide(right, risk, free_direct=False):
    found = right(risk, free_direct)
    return replace(found, rounding=1e6 * found.rounding)


OF_UNIT_STEP = "gradient_error_unit_eta"

test_another_point_constant_law_or_bound_is_seen = seen(
    Theorem4,
    Mutant(theorem4, "isotropic_step", lambda right, d, n: right(d, n) * (1 + 1e-10)),
    Mutant(theorem4, "unit_step_gradient", lambda right, *of: right(*of) * (1 + 1e-10), of=OF_UNIT_STEP),
    Mutant(theorem4, "gd_risk", lambda right, d, n: right(d, n) * (1 + 1e-10), of="risk_error"),
    Mutant(theorem4, "descent_from", lambda right, w, eta, v=None: right((1 + 1e-9) * w, eta, v)),
    Mutant(theorem4, "descent_from", lambda right, w, eta, v=None: right(w, eta, 0 * w)),
    Mutant(theorem4, "fitted_slope", lambda right, contexts, points: (-0.9, 1e-9)),
    Mutant(QuadraticRisk, "linear_regression", lambda right, **law: right(**law | {"label_noise": 1e-9})),
    Mutant(QuadraticRisk, "convex_bound", lower_bound),
    # bounds a million times as wide
    blinded(yq_lsa.LayerRisk, "gradient", lambda right, *of: (right(*of)[0], 1e6 * right(*of)[1])),
    blinded(QuadraticRisk, "convex_bound", wide),
)


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
    """One step of descent per seed, P and Q rescaled, with rows of P that do not enter."""
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
