import torch

from icl.checks.lds.support import position_heads


def test_lemma_3_1_by_slices():
    y = torch.arange(1.0, 7.0).double()[None]
    matrix = position_heads.layer(y, 2, position_heads.restricted)[0]
    rows = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 0], [0, 0, 0], [0, 0, 0]]
    assert matrix.tolist() == rows
