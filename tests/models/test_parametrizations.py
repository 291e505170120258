import torch

from icl.models import Full, LinearTransformerBlock, MultiHead, SparseA, YqLSA


def test_ends_of_the_families_that_have_them():
    for plain in (Full(2, 1), MultiHead(2, 1), SparseA(2, 1)):
        plain.initialise([0])
        assert plain.io_maps() == (None, None)
    trained_guess = YqLSA(2, 1, 1.0)
    trained_guess.initialise([0, 1])
    read_in_RPP, output_RP = trained_guess.io_maps()
    assert read_in_RPP is not None and output_RP is None
    query_RP = torch.tensor([[0.3, -2.0, 5.0]]).double().expand(2, 3)
    moved_RP = (read_in_RPP @ query_RP[..., None])[..., 0]
    guess_R = (trained_guess.v[:, 0, 0] * query_RP[:, :2]).sum(-1)
    assert torch.allclose(moved_RP[:, 2], 5.0 + guess_R) and torch.equal(moved_RP[:, :2], query_RP[:, :2])
    block = LinearTransformerBlock(2, 1, 3, 1.0)
    block.initialise([0, 1])
    read_in_RPP, output_RP = block.io_maps()
    assert read_in_RPP is None and output_RP is not None
    mlp_RPP = block.W2[:, 0].mT @ block.W1[:, 0]
    assert torch.allclose(output_RP, mlp_RPP[:, -1], rtol=1e-14)
