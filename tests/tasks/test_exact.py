"""Tests of exact risks: which models have one, replica by replica, and on S the polynomial. They are compared
with samples in tests/tasks/test_every_law.py."""

from dataclasses import replace

import pytest
import torch

from icl.models import Full, LinearTransformer, SparseA, SparseAB
from icl.tasks import LinearRegression
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.exact import _in_the_plane, exact_risk
from icl.theory.ahn.invariant_risk import InvariantRisk

GUESS = {"guess_vector": [0.3, -0.8], "guess_bias": 0.6}
INVERSE = {"dim": 2, "context": 5, "eigenvalues": [1.0, 0.25], "task_covariance": "inverse"}


def test_replicas_together_are_told_apart():
    """Evaluate one law at two contexts, and laws that differ in nothing but the guess."""
    shared = LinearRegression(dim=2, rotation="none", context=[3, 7, 3], **GUESS).law([4, 5, 6])
    law = LinearRegression(dim=2, context=3, guess_vector=[0.3, -0.8]).law([4, 4])
    guesses = replace(law, guess_RD=law.guess_RD * torch.tensor([[1.0], [2.0]]))
    contexts = LinearRegression(**INVERSE | {"context": [3, 8]}).law([4, 5])
    for family, law, seeds in (
        (Full(2, 1, 0.3), shared, [4, 5, 6]),
        (Full(2, 1, 0.3), guesses, [4, 4]),
        (SparseA(2, 2, 0.3), contexts, [4, 5]),
    ):
        family.initialise(seeds)
        together = exact_risk(LinearTransformer(family), law)(LinearTransformer(family)).tolist()
        for r, risk in enumerate(together):
            alone = LinearTransformer(family.sharing([m[r : r + 1] for m in family.matrices().values()]))
            assert exact_risk(alone, law.replica(r))(alone).item() == pytest.approx(risk, rel=1e-13)
        assert len(set(together)) == len(seeds)


def test_no_exact_risk_where_there_is_none():
    wide = LinearRegression(dim=3, task_covariance="inverse").law([0])
    assert exact_risk(LinearTransformer(SparseAB(3, 2)), wide) is None
    assert exact_risk(LinearTransformer(SparseA(3, 4)), wide) is None
    law = LinearRegression(**INVERSE).law([0])
    assert exact_risk(LinearTransformer(SparseAB(2, 4)), law) is None
    assert exact_risk(LinearTransformer(SparseA(2, 25)), law) is None
    assert exact_risk(LinearTransformer(Full(2, 2)), law) is None
    assert exact_risk(LinearTransformer(SparseA(2, 1), "tokens", "relu"), law) is None
    noisy = LinearRegression(dim=2, label_noise=0.1).law([0])
    assert exact_risk(LinearTransformer(SparseA(2, 2)), noisy) is None
    other_sign = LinearRegression(**INVERSE, read_out=1).law([0])
    assert exact_risk(LinearTransformer(SparseA(2, 2)), other_sign) is None
    assert risk_on_s(LinearTransformer(SparseA(2, 2)), other_sign) is None
    for guess in ({"guess_vector": [0.3, 0.0]}, {"guess_bias": 0.6}, {"prior_mean": [0.3, 0.0]}):
        guessed = LinearRegression(**INVERSE, **guess).law([0])
        assert exact_risk(LinearTransformer(SparseA(2, 2)), guessed) is None
        assert risk_on_s(LinearTransformer(SparseA(2, 2)), guessed) is None


@pytest.mark.parametrize("shared", [False, True])
def test_two_covariates_have_an_exact_risk_at_any_depth(shared):
    """Compare the rule for S with words at three layers, and with the polynomial on the set S at six."""
    law = LinearRegression(**INVERSE | {"context": [5, 9]}).law([0, 1])
    three = SparseA(2, 3, 0.3, shared=shared)
    three.initialise([0, 1])
    model = LinearTransformer(three)
    torch.testing.assert_close(
        _in_the_plane(law, 6)(model), exact_risk(model, law)(model), rtol=1e-12, atol=0
    )
    six = SparseA(2, 6, shared=shared)
    six.load({"A": 0.4 * torch.linalg.inv(law.Sigma_RDD)[:, None].repeat(1, six.shapes()["A"][0], 1, 1)})
    expected = [InvariantRisk(2, n, 6).value([0.4] * 6) for n in (5, 9)]
    assert exact_risk(LinearTransformer(six), law)(LinearTransformer(six)).tolist() == pytest.approx(expected)


def test_risk_on_s_is_the_polynomial_at_the_projection():
    """Compare with the exact risk on S, and off S with that of the projection."""
    law = LinearRegression(**INVERSE).law([0, 1])
    a_L = torch.tensor([0.3, 0.5], dtype=torch.float64)
    on_S = torch.linalg.inv(law.Sigma_RDD)[:, None] * a_L[:, None, None]
    family = SparseA(2, 2)
    family.load({"A": on_S})
    model = LinearTransformer(family)
    found = risk_on_s(model, law)(model)
    assert torch.allclose(found, exact_risk(model, law)(model).detach(), rtol=1e-12)
    assert found[0].item() == pytest.approx(InvariantRisk(2, 5, 2).value([0.3, 0.5]), rel=1e-13)
    assert risk_on_s(model, LinearRegression(dim=2, eigenvalues=[1.0, 0.25]).law([0, 1])) is None
    with_b = SparseAB(2, 2)
    B = 0.7 * torch.eye(2).double().expand(2, 1, 2, 2)
    with_b.load({"A": -on_S, "B": B})
    model = LinearTransformer(with_b)
    found = risk_on_s(model, law)(model)
    assert found[0].item() == pytest.approx(InvariantRisk(2, 5, 2, True).value([0.3, 0.5], [0.21]), rel=1e-12)


def test_a_shared_layer_records_the_eigenvalue_farthest_from_the_real_line():
    law = LinearRegression(**INVERSE).law([0, 1])
    family, (a, b) = SparseA(2, 3, shared=True), (0.8, 0.3)
    white_DD = torch.tensor([[a, -b], [b, a]], dtype=torch.float64)
    inverse_RDD = torch.linalg.inv(law.root_RDD)
    family.load({"A": (inverse_RDD.mT @ white_DD @ inverse_RDD)[:, None]})
    observed = law.observe(LinearTransformer(family))
    found = observed.at(LinearTransformer(family))
    assert set(found) == set(observed.names())
    for name, value in (("spectrum_real", a), ("spectrum_imag", b)):
        assert found[name].tolist() == pytest.approx([value] * 2)
    assert "spectrum_imag" not in law.observe(LinearTransformer(SparseA(2, 3))).names()
