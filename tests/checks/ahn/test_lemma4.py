from __future__ import annotations

import pytest
import torch

from icl.checks.ahn import swaps
from icl.checks.ahn.lemma4 import Lemma4
from tests.checks.asking import held

SMALL = {"samples": 50}


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        {"layers": 2, "dim": 3, "context": 4, "eigenvalues": [2, 1, 0.001], **SMALL},
        {"dim": 1, "context": 1, "layers": 2, **SMALL},
        {"dim": 12, "context": 5, "layers": 4, **SMALL},
        {"dim": 2, "context": 1, "covariance": [[2, 1], [1, 1]], **SMALL},
        {"layers": 8, "seed": 3, **SMALL},
    ],
)
def test_holds_and_rejects_its_control(settings):
    finding = held(Lemma4(**settings))
    assert finding.measured["max_error"] <= finding.bound.value < 1e-3 * finding.control.measured


def test_the_condition_of_sigma_drops_out():
    check = Lemma4(eigenvalues=[1, 1e-3, 1e-6, 1e-9, 1e-12], seed=5, samples=100)
    assert held(check).measured["words_error"] < 1e-12


@pytest.mark.parametrize("part", ["on_the_polynomial", "on_predictions", "on_words"])
def test_every_part_can_fail(monkeypatch, part):
    right, orders = getattr(swaps, part), swaps.transpositions

    def replaced(*given):
        monkeypatch.setattr(swaps, "transpositions", lambda layers: [[0] * layers])
        answer = right(*given)
        monkeypatch.setattr(swaps, "transpositions", orders)
        return answer

    monkeypatch.setattr(swaps, part, replaced)
    assert Lemma4(**SMALL).measure().verdict == "fails"


def test_fails_where_the_layers_are_off_s(monkeypatch):
    family = swaps.SparseA
    bent = torch.zeros(3, 5, 5, dtype=torch.float64)
    bent[0, 0, 1] = 1e-3

    class Bent(family):
        def load(self, matrices):
            order = matrices["A"].diagonal(dim1=-2, dim2=-1).sum(-1)[0].argsort()
            super().load({"A": matrices["A"] + bent[order][None]})

    monkeypatch.setattr(swaps, "SparseA", Bent)
    assert Lemma4(**SMALL).measure().verdict == "fails"


def test_undecided_where_the_control_is_not_rejected(monkeypatch):
    monkeypatch.setattr(Lemma4, "_off_s", lambda check, A: A)
    assert Lemma4(**SMALL).measure().verdict == "undecided"
