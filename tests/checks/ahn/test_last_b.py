import torch

from icl.checks.ahn.last_b import LastB


def test_a_change_downwards_is_a_change():
    A_LDD = torch.full((2, 1, 1), 0.1).double()
    for seed in range(8):
        assert LastB(dim=1, context=1, layers=2, samples=1, seed=seed)._change(A_LDD, A_LDD, 2 * A_LDD) > 0
