from __future__ import annotations

import numpy as np
import pytest
import torch

from icl.checks.ahn import large_context
from icl.checks.ahn.large_context import LargeContext
from tests.checks import refused

SETTINGS = [
    {},
    {"dim": 1, "contexts": [1, 2]},
    {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "contexts": [5, 10**8], "seed": 2},
    {"dim": 2, "covariance": [[2, 1], [1, 1]]},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_holds_and_rejects_its_control(settings):
    finding = LargeContext(**settings).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert np.all(np.diff(finding.measured["distance_by_context"]) < 0)


def test_the_distance_is_that_of_the_closed_form():
    measured = LargeContext(dim=2, eigenvalues=[1.0, 0.25], contexts=[4, 40]).measure().measured
    np.testing.assert_allclose(measured["distance_by_context"], [6 / 10, 6 / 46], rtol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda Sigma, N: 1.001 * large_context_preconditioner(Sigma, N),
        lambda Sigma, N: large_context_preconditioner(Sigma, max(N // 2, 1)),
        lambda Sigma, N: torch.eye(len(Sigma)).double(),
    ],
)
def test_another_preconditioner_fails(monkeypatch, wrong):
    monkeypatch.setattr(large_context, "theorem1_preconditioner", wrong)
    assert LargeContext().measure().verdict == "fails"


large_context_preconditioner = large_context.theorem1_preconditioner


def test_refuses_impossible_settings():
    contexts = ([10], "ten", [10, 5], [0, 5], [1, 10**10])
    refused.insist(LargeContext, [("contexts", {"contexts": some}) for some in contexts])
    refused.insist(LargeContext, [("dim", {"dim": 65}), ("eigenvalues", {"dim": 2, "eigenvalues": [1, 0]})])
