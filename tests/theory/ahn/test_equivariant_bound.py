from fractions import Fraction

import numpy as np
import pytest
import torch

from icl.tasks.expected_traces import sparse_a_risk
from icl.theory.ahn.equivariant_bound import equivariant_bound, equivariant_optimum, terms_of
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.wishart import product_moment


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 3), (5, 20)])
def test_attained_by_one_layer(dim, context):
    assert equivariant_bound(dim, context, 1) == Fraction(dim * (dim + 1), context + dim + 1)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_attained_in_one_dimension(layers):
    """Compare in one dimension, where every polynomial with q(0) = 1 of that degree is K, and the best has
    real roots."""
    bound = float(equivariant_bound(1, 7, layers))
    assert bound == pytest.approx(InvariantRisk(1, 7, layers).optimum().risk, rel=1e-10)


@pytest.mark.parametrize(("dim", "context", "layers"), [(2, 4, 2), (2, 4, 3), (3, 10, 2), (5, 20, 3)])
def test_below_the_optimum_on_s_and_any_other_risk(dim, context, layers):
    bound = float(equivariant_bound(dim, context, layers))
    optimum = InvariantRisk(dim, context, layers).optimum()
    assert 0 < bound < optimum.risk
    assert bound < float(equivariant_bound(dim, context, layers - 1))
    identity, rng = torch.eye(dim).double(), np.random.default_rng(0)
    on_s = torch.from_numpy(optimum.a_L)[:, None, None] * identity
    noise = torch.from_numpy(rng.standard_normal((20, layers, dim, dim)))
    risks = sparse_a_risk(on_s + 0.05 * noise, identity, identity, context)
    assert float(risks.min()) > bound


@pytest.mark.parametrize(("dim", "context", "layers"), [(1, 2, 3), (2, 1, 2), (3, 5, 2)])
def test_the_bound_is_the_risk_of_the_k_that_it_comes_with(dim, context, layers):
    bound, coefficients = equivariant_optimum(dim, context, layers)
    terms = {(0, ()): Fraction(1), **coefficients}
    found = Fraction(0)
    for (p, under), c in terms.items():
        for (q, other), d in terms.items():
            degree = p + q + sum(under) + sum(other)
            moment = Fraction(product_moment([p + q, *under, *other], dim, context), context**degree)
            found += c * d * moment
    assert found == bound


def test_terms():
    assert terms_of(2) == [(1, ()), (1, (1,)), (2, ())]
    assert len(terms_of(3)) == 7 and (1, (2,)) in terms_of(3) and (1, (1, 1)) in terms_of(3)
