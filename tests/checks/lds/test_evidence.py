from __future__ import annotations

import numpy as np
import pytest
import torch

from icl.checks.lds import evidence
from icl.theory.gaussian import moment


def test_the_grid_is_gaussian():
    root = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 5)))
    C = root @ root.T
    found = evidence.moments_on_a_grid(C, 1)
    assert float(found.constant) == pytest.approx(float(C[4, 4]), rel=1e-12)
    value = sum(moment([3, 4, t, t + 1], torch.zeros(5).double(), C) for t in range(3)) / 3
    assert float(found.linear_KS[0, 1]) == pytest.approx(float(value), rel=1e-12)
