import itertools

import torch

from icl.checks.lds import lemmaC_1
from icl.checks.lds.lemmaC_1 import LemmaC1
from icl.checks.lds.support import sequences
from icl.checks.lds.support.observability import observability
from icl.random import generator
from icl.tasks import dynamical_system as task
from tests.checks.asking import held

SETTINGS = ("a", "b", "c", "d")


def test_lemma_c_1():
    finding = held(LemmaC1(dim=3, samples=500))
    assert set(finding.measured["least_ratio_by_setting"]) == set(SETTINGS)
    assert LemmaC1(setting="b", dim=1, samples=50).measure().verdict == "holds"


def test_lemma_c_1_is_vandermonde_s_determinant():
    """Compare with E.1: det O = prod z_i prod (v_j - v_i) / det P, at P orthogonal."""
    law = sequences.law_of("b", 1, 3, 3, 0)
    systems = law.systems([generator(0, "check")], 20)
    A, c = systems.A_RBDD[0], systems.c_RBD[0]
    values, vectors = torch.linalg.eigh(A)
    z = (c[:, None] @ vectors)[:, 0]
    gaps = torch.stack([values[:, j] - values[:, i] for i, j in itertools.combinations(range(3), 2)]).prod(0)
    found = torch.linalg.det(observability(A, c)).abs()
    assert torch.allclose(found, (z.prod(1) * gaps).abs(), rtol=1e-8)


def repeated(right, *given):
    v = right(*given)
    v[:, 1] = v[:, 0]
    return v


def test_lemma_c_1_is_undecided_where_an_eigenvalue_repeats(monkeypatch):
    right = task._eigenvalues
    monkeypatch.setattr(task, "_eigenvalues", lambda *given: repeated(right, *given))
    monkeypatch.setattr(lemmaC_1, "systems_off", lambda *given: 0.0)
    assert LemmaC1(dim=3, samples=50).measure().verdict == "undecided"


def test_lapack_makes_the_same_systems():
    for dim in (1, 2, 5, 8):
        for seed in range(5):
            assert LemmaC1(dim=dim, samples=500, seed=seed).measure().measured["systems_off"] < 1
