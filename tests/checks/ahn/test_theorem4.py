from dataclasses import replace

import pytest
import torch

from icl.checks.ahn import theorem4
from icl.checks.ahn.support import batch_loss, critical_set, orbits, token_stacks
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.verdict import Weights
from icl.models import gram
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import Mutant, blinded, edited, elsewhere, held, holds, refuses, seen

SMALL = {"samples": 1000, "starts": 6}
PLAIN = {"dim": 3, "context": 6, "eigenvalues": [2, 1, 0.25], "layers": 2, **SMALL}


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """The search on the batch loss, on which no verdict rests, and tokens, which have tests of their own."""
    monkeypatch.setattr(batch_loss, "SEARCH_STEPS", 3)
    monkeypatch.setattr(theorem4, "BATCH", 2000)
    monkeypatch.setattr(token_stacks, "BUDGET", 20_000_000)


@holds(
    Theorem4,
    {},
    PLAIN,
    {"dim": 3, "context": 2, "eigenvalues": [2, 1, 0.001]},
    {"dim": 1, "context": 3, "layers": 2},
    {"dim": 2, "context": 1, "layers": 1},
    {"dim": 2, "context": 9, "layers": 4, "starts": 2},
    {"dim": 2, "context": 5, "distortion": [[1, 2], [0, 1]]},
    {"dim": 5, "context": 10, "eigenvalues": [1e4, 1, 1, 1, 1e-2], "layers": 2},
    {"dim": 3, "context": 6, "eigenvalues": [1, 1, 1e-9], "layers": 2},
    {"dim": 3, "context": 10**4},
    **SMALL,
)
def test_holds(check, finding):
    measured, layers = finding.measured, check.risk.layers
    assert (len(measured["a"]), len(measured["b"]), len(measured["beta"])) == (layers, layers - 1, layers - 1)
    assert measured["beta"] == pytest.approx(
        [a * b for a, b in zip(measured["a"], measured["b"], strict=False)]
    )
    assert measured["risk"] == min(measured["local_minima"])
    assert measured["off_direction"] <= finding.bound.value


def test_a_batch_hides_the_risk_at_a_nearby_point(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(token_stacks, "BUDGET", 10_000_000)
    measured = Theorem4(samples=1000, starts=16).measure().measured
    assert measured["nearby_batch_loss_20000"] < measured["batch_loss_20000"]
    assert measured["nearby_risk_over_batch_loss"] > 10 * measured["risk_over_batch_loss"]


def scalars_off(right, *given):
    return [replace(minimum, beta_L=minimum.beta_L * (1 + 1e-6)) for minimum in right(*given)]


def another_polynomial(right, risk, theta, *more, **how):
    """A minimum of a wrong one is not one of the model's risk, which the exact rule evaluates."""
    return right(risk, theta * (1 + 1e-6), *more, **how)


test_other_points_and_other_risks_are_seen = seen(
    Theorem4,
    Mutant(InvariantRisk, "minimise", scalars_off),
    Mutant(InvariantRisk, "_query", another_polynomial),
    Mutant(critical_set, "spectral_risk", lambda right, a, b, s: right(a, -b, s)),
    blinded(orbits, "tilted", lambda right, A: A),
    Mutant(InvariantRisk, "minimise", lambda right, *given: [], "undecided"),  # no minimum is reached
    needs="no_tokens",
    **PLAIN,
)


test_every_operator_of_the_gram_path_is_seen = seen(
    Theorem4,
    *(
        Mutant(gram, "sparse_forward", edited(gram.sparse_forward, *change), of="paths_error")
        for change in (
            ("move_RDDB.transpose(1, 2)", "move_RDDB", 0),
            ("move_RDDB.transpose(1, 2)", "move_RDDB", 1),
            ("product(move_RDDB, Gxx_RDDB, Gxx_RDDB)", "product(Gxx_RDDB, move_RDDB, Gxx_RDDB)"),
            ("product(move_RDDB, x_RD1B, x_RD1B)", "product(move_RDDB.transpose(1, 2), x_RD1B, x_RD1B)"),
            ("product(move_RDDB, x_RD1B, x_RD1B)", "x_RD1B"),
            ("product(row_R1DB, Gxx_RDDB, gyx_R1DB)", "gyx_R1DB"),
            ("from_right(gyx_R1DB, A_RLDD[:, layer])", "from_right(gyx_R1DB, A_RLDD[:, layer].mT)"),
            ("Gxx_RDDB), A_RLDD[:, layer])", "Gxx_RDDB), A_RLDD[:, layer].mT)"),
            ("from_left(B_RLDD[:, layer]", "from_left(B_RLDD[:, layer].mT"),
            ("layer + 2 < layers", "layer + 3 < layers"),
        )
    ),
    **PLAIN | {"layers": 3},
)


def weights_near_s(layers, place=0, noise=0.0):
    law = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25], task_covariance="inverse").law([0, 1])
    risk = InvariantRisk(3, 8, layers, with_b=True)
    minimum = risk.minimise(generator(0, "search"), 8)[place]
    A = -torch.tensor(minimum.a_L)[:, None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]
    b = torch.tensor(minimum.b_L)[None, :, None, None].expand(2, -1, -1, -1)
    B = b * torch.eye(3, dtype=torch.float64)
    rng = generator(0, "control")
    A, B = (M * (1 + noise * torch.tensor(rng.standard_normal(M.shape))) for M in (A, B))
    return Weights("sparse_ab", {"A": A, "B": B} if layers > 1 else {"A": A}, law)


@pytest.mark.parametrize(("layers", "place"), [(1, 0), (2, 0), (2, 1)])
def test_judges_weights_by_distance_and_risk(layers, place):
    check = Theorem4(**SMALL)
    near = held(check, weights_near_s(layers, place, 0.003))
    assert (near.measured["risk_excess_over_best"] > 0.02) == (place > 0)
    elsewhere(check.judge(weights_near_s(layers, place, 0.5)))
    scaled = weights_near_s(layers, place)
    assert check.judge(scaled).measured["gradient_norm"] < 1e-9
    scaled = replace(scaled, matrices=scaled.matrices | {"A": 1.3 * scaled.matrices["A"]})
    elsewhere(check.judge(scaled))


def test_weights_the_theorem_does_not_speak_of_are_refused():
    refuses(Theorem4(**SMALL), (replace(weights_near_s(2), family="sparse_a"), "sparse_a "))
