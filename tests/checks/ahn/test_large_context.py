import numpy as np
import pytest

from icl.checks.ahn import large_context
from icl.checks.ahn.large_context import LargeContext
from icl.checks.ahn.support import preconditioner
from icl.errors import InputError
from tests.checks.asking import Mutant, held, holds, seen


@holds(
    LargeContext,
    {},
    {"dim": 1, "contexts": [1, 2]},
    {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "contexts": [5, 10**8], "seed": 2},
    {"dim": 2, "covariance": [[2, 1], [1, 1]]},
    {"dim": 2, "contexts": [1, 10, 10**9]},  # 1 - distance has seven digits here
    {"dim": 1, "contexts": [10**9 - 1, 10**9]},
    {"dim": 2, "eigenvalues": [1e-300, 2e-300]},
)
def test_holds(check, finding):
    assert np.all(np.diff(finding.measured["distance_by_context"]) < 0)


def test_the_distance_is_that_of_the_closed_form():
    """r / (N + r), and N times that is below r = 1 + tr(Sigma) / lambda_min = 6."""
    finding = LargeContext(dim=2, eigenvalues=[1.0, 0.25], contexts=[4, 40]).measure()
    np.testing.assert_allclose(finding.measured["distance_by_context"], [6 / 10, 6 / 46], rtol=1e-12)
    assert finding.bound.value == pytest.approx(6)


@pytest.mark.parametrize("seed", range(10))
def test_long_contexts_are_decided(seed):
    contexts, eigenvalues = [1, 10**8, 10**9], [[1, 1], [1e6, 1, 1e-6], [3, 2, 1e-12]][seed % 3]
    held(LargeContext(dim=len(eigenvalues), contexts=contexts, eigenvalues=eigenvalues, seed=seed))


def test_an_inverse_lost_to_rounding_is_refused():
    with pytest.raises(InputError, match=r"check\.eigenvalues"):
        LargeContext(dim=2, eigenvalues=[1e200, 1e-10])


EQ_6 = (large_context, preconditioner)

test_another_preconditioner_is_seen = seen(
    LargeContext,
    Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: 1.001 * right(Sigma, N)),
    Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: right(Sigma, max(N // 2, 1))),
    Mutant(EQ_6, "theorem1_preconditioner", lambda right, Sigma, N: (1 + 1e-10) * right(Sigma, N)),
    Mutant(preconditioner, "context_times_distance", lambda right, *at: 1.1 * right(*at)),
    Mutant(
        preconditioner,
        "context_times_distance",
        lambda right, *at: (1 - 1e-9) * right(*at),
        of="largest_difference",
    ),
)
