"""Tests that sizes and names that no model can have are refused, with the setting's name and value."""

import numpy as np
import pytest
import torch

import icl
from icl.errors import InputError
from icl.models import LSA, Encoder, LinearTransformer, LinearTransformerBlock, MultiHead, SparseA, SparseAB


def encoder(**settings):
    return Encoder(2, **{"layers": 2, "width": 4, "heads": 2} | settings)


def loaded(**matrices):
    return SparseAB(2, 2).load({name: torch.ones(shape) for name, shape in matrices.items()})


REFUSED = [
    (lambda: SparseA(2, 0), r"model\.layers=0: must be an integer from 1 to 64"),
    (lambda: SparseA(2, 65), r"model\.layers=65"),
    (lambda: SparseA(0), r"task\.dim=0"),
    (lambda: MultiHead(2, heads=0), r"model\.heads=0: must be an integer from 1 to 1024"),
    (lambda: LinearTransformerBlock(2, hidden=0), r"model\.hidden=0: must be an integer from 1 to 65536"),
    (lambda: SparseA(2, 1, init_std=-1.0), r"model\.init_std=-1\.0"),
    (lambda: SparseA(2, 1, init_std=[0.1, float("nan")]), r"model\.init_std=nan"),
    (lambda: SparseA(2, 1, init_std=[1.0, 0.0, 0.01]).initialise([0, 1]), "has 3 entries for 2 seeds"),
    (lambda: loaded(A=(1, 2, 2, 2)), r"weights B: must have shape \(seeds, 1, 2, 2\), got nothing"),
    (lambda: loaded(A=(1, 3, 2, 2)), r"weights A: must have shape \(seeds, 2, 2, 2\), got \(1, 3, 2, 2\)"),
    (lambda: LSA(3, 2, width=4), r"model\.width=4"),
    (lambda: LSA(3, 2, scalars=[1.0]), r"model\.scalars"),
    (lambda: LSA(3, 2, scalars=[1.0, 1.0, 0.1, 1.0], rank=2), r"model\.rank factors"),
    (lambda: encoder(heads=3), r"model\.heads"),
    (lambda: encoder(mask=1), r"model\.mask"),
    (lambda: encoder(clip=0), r"model\.clip"),
    (lambda: encoder(attention="relu"), r"model\.attention"),
    (lambda: encoder(norm="batch"), r"model\.norm"),
    (lambda: encoder(reads="w"), r"model\.reads"),
    (lambda: LinearTransformer(SparseA(2, 1), "grams"), r"path=grams: must be .* did you mean gram\?"),
    (
        lambda: LinearTransformer(SparseA(2, 1), "tokens", "Relu"),
        "activation=Relu: must be one of identity, relu",
    ),
    (lambda: icl.exact_risk(np.eye(3), np.eye(4)), r"Q: has shape \(4, 4\), must have that of P"),
    (lambda: icl.exact_risk(np.ones(3), np.eye(3)), r"P: has shape \(3,\), must be \(p, p\)"),
    (lambda: icl.exact_risk(np.eye(3) * np.nan, np.eye(3)), "P: every entry must be a finite number"),
    (lambda: icl.exact_risk(np.eye(3), np.eye(3), dim=3), "dim=3: must be 2, since P has 3 rows"),
    (lambda: icl.exact_risk(np.eye(3), np.eye(3), kontext=3), "kontext"),
    (lambda: icl.exact_risk(np.eye(3), np.eye(3), context=0), r"exact_risk\.context=0: must be an integer"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
