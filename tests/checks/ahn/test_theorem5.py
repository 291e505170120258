from dataclasses import replace

import pytest
import torch

from icl.checks import token_evidence
from icl.checks.ahn.support import relu_layer
from icl.checks.ahn.theorem5 import Theorem5
from icl.checks.verdict import Weights
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.relu_risk import ReluRisk
from tests.checks.asking import elsewhere, held, refuses


class Almost(ReluRisk):
    """The law with d + 1.9 for d + 2, in risk and minimiser: all algebra agrees, the risk is 1 % off."""

    curvature = property(lambda risk: (2 * (risk.dim + 1.9) + risk.context - 1) / (4 * risk.context))


def test_tokens_reject_a_formula_and_its_minimiser_that_are_wrong_together():
    law = LinearRegression(5, 20, covariance="identity").law([0])
    for risk, verdict in ((ReluRisk(5, 20), "holds"), (Almost(5, 20), "fails")):
        claim = relu_layer.diagonal_point(1 / (2 * risk.curvature), 5)
        assert relu_layer.gradient_norm(risk, *claim) < 1e-14
        found = relu_layer.compare_with_tokens([claim], risk, law, generator(0, "check"), 100_000)
        assert found.verdict == verdict


def test_a_context_of_tokens_is_drawn_in_blocks(monkeypatch):
    drawn, right = [], relu_layer.draw_tokens
    monkeypatch.setattr(
        relu_layer, "draw_tokens", lambda law, rng, batch: drawn.append(batch) or right(law, rng, batch)
    )
    monkeypatch.setattr(token_evidence, "BLOCK", 10**6)
    Theorem5(8, 64, samples=5000).measure()
    assert max(drawn) * 64 * 8 <= 10**6 and sum(drawn) >= 5000


def weights(family, scale=1.0, tilt=0.0):
    law = LinearRegression(4, 9, eigenvalues=[1] * 4).law([0, 1])
    A_DD = scale * ReluRisk(4, 9).minimiser * torch.eye(4, dtype=torch.float64)
    A_DD[0, 1] += tilt
    if family == "full":
        P, Q = torch.zeros(2, 2, 1, 5, 5, dtype=torch.float64)
        P[..., -1, -1], Q[..., :-1, :-1] = 2, A_DD / 2
        Q[..., :-1, -1] = 3
        return Weights(family, {"P": P, "Q": Q}, law, "relu")
    sign = -1 if family == "sparse_a" else 1
    return Weights(family, {"A": sign * A_DD.expand(2, 1, 4, 4)}, law, "relu")


@pytest.mark.parametrize("family", ["sparse_a", "sparse_ab", "full"])
def test_judges_weights_by_distance_and_risk(family):
    check = Theorem5(samples=5000)
    near = held(check, weights(family, 1.03))
    assert near.measured["risk_excess"] > 0
    assert check.judge(weights(family)).measured["gradient_norm"] < 1e-13
    elsewhere(check.judge(weights(family, 1.3)))
    elsewhere(check.judge(weights(family, tilt=0.2)))


def test_weights_the_theorem_does_not_speak_of_are_refused():
    check, full = Theorem5(samples=5000), weights("full")
    two = {name: torch.cat([M, M], 1) for name, M in full.matrices.items()}
    refuses(
        check,
        (replace(full, activation="identity"), "identity"),
        (replace(full, matrices=full.matrices | {"Q": full.matrices["Q"] + 1e-3}), "last row of Q"),
        (replace(full, law=LinearRegression(4, 9, eigenvalues=[2, 1, 1, 1]).law([0, 1])), r"N\(0, I\)"),
        (replace(full, law=replace(full.law, read_out=1)), "read_out"),
        (replace(full, matrices=two), "2 layers"),
    )
