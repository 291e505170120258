"""giannou's perturbed Hessians against numpy."""

from random import Random

import numpy as np
import pytest
from flint import fmpq

from icl.theory.giannou.perturbation import condition_gaps, drawn, inverse_share, norm


def array(M):
    return np.array([[int(x.p) / int(x.q) for x in row] for row in M.tolist()])


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_shares_and_gaps(dim):
    mu = fmpq(1, 5)
    for H, E in drawn(4, 3, dim, mu, Random(dim)):
        symmetric = (E + E.transpose()) / 2
        h, e = array(H), array(E)
        size = np.linalg.norm(e, 2)
        assert np.linalg.eigvalsh(h)[0] > 0.2 - 1e-12 and 0 < size < 0.2
        assert float(norm(E).mid()) == pytest.approx(size, rel=1e-12)
        moved = np.linalg.norm(np.linalg.inv(h + e) - np.linalg.inv(h), 2)
        share = float(inverse_share(H, E, mu).mid())
        assert share == pytest.approx(moved / (size / (0.2 * (0.2 - size))), rel=1e-10)
        if dim > 1:
            s = array(symmetric)
            (lh, lb, le) = (np.linalg.eigvalsh(M) for M in (h, h + s, s))
            kappa = lb[-1] / lb[0]
            above, below = (float(gap.mid()) for gap in condition_gaps(H, symmetric))
            assert above == pytest.approx((lh[-1] + le[-1]) / (lh[0] + le[0]) - kappa, rel=1e-8)
            assert below == pytest.approx(kappa - (lh[-1] + le[0]) / (lh[0] + le[-1]), rel=1e-8)
