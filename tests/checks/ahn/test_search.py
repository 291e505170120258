from __future__ import annotations

import pytest
import torch

from icl.checks.ahn import search
from icl.random import generator


@pytest.mark.parametrize(("family", "size"), [("diagonal", 4), ("symmetric", 10), ("free", 16)])
def test_bases_are_orthonormal_and_of_their_family(family, size):
    basis = search.basis(family, 4)
    V = basis.flatten(1)
    assert len(V) == size
    torch.testing.assert_close(V @ V.T, torch.eye(size, dtype=torch.float64))
    if family != "free":
        torch.testing.assert_close(basis, basis.mT)


@pytest.mark.parametrize("family", search.FAMILIES)
def test_finds_the_nearest_matrix_of_the_family(family):
    target = torch.tensor(generator(0, "check").standard_normal((2, 3, 3)))
    projected = {
        "diagonal": target.diagonal(dim1=1, dim2=2).diag_embed(),
        "symmetric": (target + target.mT) / 2,
        "free": target,
    }[family]

    def risk(A):
        return (A - target).square().sum((-1, -2, -3)) + 1

    start = torch.eye(3, dtype=torch.float64).expand(2, 3, 3)
    found = search.search(family, risk, [start], 2, generator(0, "search"))
    torch.testing.assert_close(found.A_LDD, projected)
    assert found.risk == pytest.approx(float(risk(projected)), rel=1e-12)
    assert found.accuracy < 1e-20 and found.spread < 1e-8


def test_knows_nothing_at_a_saddle():
    theta = torch.zeros(2, 1, dtype=torch.float64)
    _, gain = search.polish(lambda t: t[0, 0] ** 2 - t[1, 0] ** 2, theta)
    assert gain == float("inf")
