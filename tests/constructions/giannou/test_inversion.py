import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.constructions.giannou import inversion
from icl.models.giannou.columns import ColumnStack


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_one_step_in_two_layers_and_in_one(dim, seed):
    A, X = torch.from_numpy(np.random.default_rng(seed).standard_normal((2, dim, dim)))
    expected = X @ (2 * torch.eye(dim) - A @ X)
    for stack, stored in ((inversion.lemma4_1(dim), A), (inversion.lemma4_1_one_layer(dim), A.mT)):
        H = inversion.prompt_of_lemma(stack, X, stored)
        out = stack(H)
        torch.testing.assert_close(stack.block(out, "X"), expected, rtol=1e-11, atol=1e-11)
        assert torch.equal(out[dim:], H[dim:])  # every other block as it was, to the bit
    assert (stack.width, inversion.lemma4_1(dim).heads) == (4 * dim, 2)
    assert len(inversion.lemma4_1(dim).layers) == 2


def test_restored_puts_the_identity_back():
    A, X = torch.from_numpy(np.random.default_rng(3).standard_normal((2, 3, 3)))
    rows = inversion.rows_of_lemma(3)
    stack = ColumnStack(rows, inversion.two_layers(rows, restored=True))
    out = stack(inversion.prompt_of_lemma(stack, X, A))
    torch.testing.assert_close(stack.block(out, "A"), torch.eye(3).double(), rtol=0, atol=1e-14)
    assert not stack.block(out, "Z").any()
