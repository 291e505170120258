import numpy as np
import pytest

from icl.checks.ahn import large_context
from icl.checks.ahn.large_context import LargeContext
from tests.checks.asking import Mutant, holds, seen


@holds(
    LargeContext,
    {},
    {"dim": 1, "contexts": [1, 2]},
    {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "contexts": [5, 10**8], "seed": 2},
    {"dim": 2, "covariance": [[2, 1], [1, 1]]},
)
def test_holds(check, finding):
    assert np.all(np.diff(finding.measured["distance_by_context"]) < 0)


def test_the_distance_is_that_of_the_closed_form():
    """r / (N + r), and N times that is below r = 1 + tr(Sigma) / lambda_min = 6."""
    finding = LargeContext(dim=2, eigenvalues=[1.0, 0.25], contexts=[4, 40]).measure()
    np.testing.assert_allclose(finding.measured["distance_by_context"], [6 / 10, 6 / 46], rtol=1e-12)
    assert finding.bound.value == pytest.approx(6)


test_another_preconditioner_is_seen = seen(
    LargeContext,
    Mutant(large_context, "theorem1_preconditioner", lambda right, Sigma, N: 1.001 * right(Sigma, N)),
    Mutant(large_context, "theorem1_preconditioner", lambda right, Sigma, N: right(Sigma, max(N // 2, 1))),
)
