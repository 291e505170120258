import numpy as np
import pytest
import torch

from icl.checks.lds.support import isserlis
from icl.theory.gaussian import moment


def test_lemma_d_3_moments_by_recursion():
    root = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 5)))
    C = root @ root.T
    index = torch.tensor([[0, 1, 2, 3, 4, 4], [1, 1, 2, 2, 3, 0]])
    found = isserlis.conditional(C[None], index)[0]
    for value, row in zip(found, index.tolist(), strict=True):
        assert float(value) == pytest.approx(float(moment(row, torch.zeros(5).double(), C)), rel=1e-12)
    assert [len(list(isserlis.pairings(list(range(n))))) for n in (2, 4, 6)] == [1, 3, 15]
    tuples = isserlis.odd_tuples(np.random.default_rng(1), 4, 4, 24)
    assert bool(((tuples + 1).sum(1) % 2 == 1).all()) and int(tuples.min()) >= 0 and int(tuples.max()) <= 3
