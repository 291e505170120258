import numpy as np
import pytest

from icl.checks.ahn.large_context import LargeContext
from icl.errors import InputError
from tests.checks.asking import held


def test_the_distance_is_that_of_the_closed_form():
    """Compare with r / (N + r); N times that is below r = 1 + tr(Sigma) / lambda_min = 6."""
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
