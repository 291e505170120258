from __future__ import annotations

import pytest
import torch

from icl.checks import attention
from icl.checks.ahn import last_b
from icl.checks.ahn.last_b import LastB
from tests.checks.asking import held

SETTINGS = [
    {},
    {"dim": 1, "context": 1, "layers": 2, "samples": 5},
    {"dim": 2, "context": 3, "eigenvalues": [1e4, 1e-4], "layers": 4, "seed": 3},
    {"dim": 3, "context": 2, "covariance": [[2, 0.7, 0], [0.7, 1, 0], [0, 0, 3]]},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_holds_and_rejects_its_control(settings):
    finding = held(LastB(**settings), 1000)
    assert finding.measured["change_of_covariates"] > 1000 * finding.bound.value


def test_attention_of_another_form_fails(monkeypatch):
    """Layers whose last B comes before the labels are read."""
    right = attention.every_layer

    def covariates_first(P_LPP, Q_LPP, Z_BPM):
        moved = right(P_LPP, Q_LPP, Z_BPM)[-1]
        labels = torch.cat([moved[:, :-1], Z_BPM[:, -1:]], 1)
        return right(P_LPP[-1:], Q_LPP[-1:], labels)

    monkeypatch.setattr(last_b.attention, "every_layer", covariates_first)
    assert LastB().measure().verdict == "fails"


def test_an_earlier_b_in_its_place_fails(mutate):
    mutate(last_b, "sparse_stack", lambda right: lambda A, B: right(A, B.flip(1)))
    assert LastB().measure().verdict == "fails"
