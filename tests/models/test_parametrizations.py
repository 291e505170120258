import pytest
import torch
from torch import nn

from icl.models import Full, LinearTransformerBlock, MultiHead, SparseA, SparseAB, YqLSA

FAMILIES = [
    lambda **k: Full(3, 2, **k),
    lambda **k: MultiHead(3, 2, heads=2, **k),
    lambda **k: SparseA(3, 2, **k),
    lambda **k: SparseAB(3, 2, **k),
    lambda **k: YqLSA(3, 2, **k),
    lambda **k: LinearTransformerBlock(3, 2, hidden=2, **k),
]


@pytest.mark.parametrize("make", FAMILIES)
def test_a_replicas_weights_are_a_function_of_its_seed(make):
    together, alone = make(init_std=0.1), make(init_std=0.1)
    together.initialise([4, 7])
    alone.initialise([7])
    for name, tensor in together.matrices().items():
        assert tensor.shape == (2, *together.shapes()[name]) and tensor.requires_grad
        assert torch.equal(tensor[1], alone.matrices()[name][0]) and not torch.equal(tensor[0], tensor[1])
        assert 0.02 < tensor.std() < 0.2
    assert list(dict(together.named_parameters())) == list(together.shapes())


def test_shapes():
    assert SparseAB(2, 1).shapes() == {"A": (1, 2, 2)}
    assert Full(2, 1).shapes() == {"P": (1, 3, 3), "Q": (1, 3, 3)}
    assert MultiHead(2, 1, heads=4).shapes()["P"] == (1, 4, 3, 3)


def test_init_std_per_replica():
    family = SparseA(40, 1, init_std=[1.0, 0.0, 0.01])
    family.initialise([0, 1, 2])
    A = family.A.detach()
    assert A[0].std().item() == pytest.approx(1, rel=0.1) and (A[1] == 0).all()
    assert A[2].std().item() == pytest.approx(0.01, rel=0.1)


def test_ends_of_the_families_that_have_them():
    for plain in (Full(2, 1), MultiHead(2, 1), SparseA(2, 1)):
        plain.initialise([0])
        assert plain.ends() == (None, None)
    trained_guess = YqLSA(2, 1, 1.0)
    trained_guess.initialise([0, 1])
    read_in_RPP, output_RP = trained_guess.ends()
    assert read_in_RPP is not None and output_RP is None
    query_RP = torch.tensor([[0.3, -2.0, 5.0]]).double().expand(2, 3)
    moved_RP = (read_in_RPP @ query_RP[..., None])[..., 0]
    guess_R = (trained_guess.v[:, 0, 0] * query_RP[:, :2]).sum(-1)
    assert torch.allclose(moved_RP[:, 2], 5.0 + guess_R) and torch.equal(moved_RP[:, :2], query_RP[:, :2])
    block = LinearTransformerBlock(2, 1, 3, 1.0)
    block.initialise([0, 1])
    read_in_RPP, output_RP = block.ends()
    assert read_in_RPP is None and output_RP is not None
    mlp_RPP = block.W2[:, 0].mT @ block.W1[:, 0]
    assert torch.allclose(output_RP, mlp_RPP[:, -1], rtol=1e-14)


def test_sharing_is_the_same_family_on_other_parameters():
    family = SparseAB(2, 2, 1.0)
    family.initialise([0, 1])
    views = [nn.Parameter(t.data[1:]) for t in family.matrices().values()]
    other = family.sharing(views)
    assert other.A is views[0] and torch.equal(other.A[0], family.A[1]) and family.A.shape[0] == 2
    other.A.data.zero_()
    assert (family.A[1] == 0).all()


def test_load_takes_weights_and_checks_their_shape():
    family = SparseAB(2, 2)
    family.initialise([0])
    given = {"A": torch.ones(3, 2, 2, 2), "B": torch.ones(3, 1, 2, 2)}
    family.load(given)
    given["A"].zero_()
    assert family.A.shape[0] == 3 and (family.A == 1).all()
