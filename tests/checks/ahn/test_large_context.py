from __future__ import annotations

import numpy as np
import pytest
import torch

from icl.checks.ahn import large_context
from icl.checks.ahn.large_context import LargeContext
from tests.checks.asking import held

SETTINGS = [
    {},
    {"dim": 1, "contexts": [1, 2]},
    {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "contexts": [5, 10**8], "seed": 2},
    {"dim": 2, "covariance": [[2, 1], [1, 1]]},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_holds_and_rejects_its_control(settings):
    assert np.all(np.diff(held(LargeContext(**settings)).measured["distance_by_context"]) < 0)


def test_the_distance_is_that_of_the_closed_form():
    """r / (N + r), and N times that is below r = 1 + tr(Sigma) / lambda_min = 6."""
    finding = LargeContext(dim=2, eigenvalues=[1.0, 0.25], contexts=[4, 40]).measure()
    np.testing.assert_allclose(finding.measured["distance_by_context"], [6 / 10, 6 / 46], rtol=1e-12)
    assert finding.bound.value == pytest.approx(6)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda right: lambda Sigma, N: 1.001 * right(Sigma, N),
        lambda right: lambda Sigma, N: right(Sigma, max(N // 2, 1)),
        lambda right: lambda Sigma, N: torch.eye(len(Sigma)).double(),
    ],
)
def test_another_preconditioner_fails(mutate, wrong):
    mutate(large_context, "theorem1_preconditioner", wrong)
    assert LargeContext().measure().verdict == "fails"
