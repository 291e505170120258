import numpy as np
import pytest
import torch
from flint import fmpq

from icl.tasks.expected_traces import sparse_a_risk
from icl.tasks.wishart import draw_wishart
from icl.theory.ahn.equivariant_bound import equivariant_bound, terms_of
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.numbers import as_float
from icl.theory.wishart import best_polynomial, covariance_moments


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 3), (5, 20)])
def test_attained_by_one_layer(dim, context):
    assert equivariant_bound(dim, context, 1) == fmpq(dim * (dim + 1), context + dim + 1)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_attained_in_one_dimension(layers):
    """Compare in one dimension, where every polynomial with q(0) = 1 of that degree is K, and the best has
    real roots."""
    bound = as_float(equivariant_bound(1, 7, layers))
    assert bound == pytest.approx(InvariantRisk(1, 7, layers).optimum().risk, rel=1e-10)


@pytest.mark.parametrize(("dim", "context", "layers"), [(2, 4, 2), (2, 4, 3), (3, 10, 2), (5, 20, 3)])
def test_below_the_optimum_on_s_and_any_other_risk(dim, context, layers):
    bound = as_float(equivariant_bound(dim, context, layers))
    optimum = InvariantRisk(dim, context, layers).optimum()
    assert 0 < bound < optimum.risk
    assert bound < as_float(equivariant_bound(dim, context, layers - 1))
    identity, rng = torch.eye(dim).double(), np.random.default_rng(0)
    on_s = torch.from_numpy(optimum.a_L)[:, None, None] * identity
    noise = torch.from_numpy(rng.standard_normal((20, layers, dim, dim)))
    risks = sparse_a_risk(on_s + 0.05 * noise, identity, identity, context)
    assert float(risks.min()) > bound


def test_the_form_is_that_of_drawn_contexts():
    """Minimise by least squares on a large draw: the same minimum, within a few times its error."""
    S = draw_wishart(np.random.default_rng(0), 20, 3, 200_000) / 20
    powers = [np.broadcast_to(np.eye(3), S.shape)]
    for _ in range(2):
        powers.append(powers[-1] @ S)
    traces = {m: np.trace(powers[m], axis1=1, axis2=2) for m in (1, 2)}
    columns = [
        (powers[power] * np.prod([traces[m] for m in under], axis=0)[..., None, None]
         if under else powers[power]).reshape(-1)
        for power, under in terms_of(2)
    ]  # fmt: skip
    design, goal = np.stack(columns, 1), -powers[0].reshape(-1)
    left = np.square(design @ np.linalg.lstsq(design, goal, rcond=None)[0] - goal)
    assert left.sum() / len(S) == pytest.approx(as_float(equivariant_bound(3, 20, 2)), rel=0.02)


def test_terms_that_others_span_are_left_out():
    """Compare at one covariate, or with one token, where S attains the bound."""
    for dim, context, layers in ((1, 2, 3), (2, 1, 2), (4, 1, 3)):
        least = best_polynomial(covariance_moments(dim, context, 2 * layers + 1), layers)[1]
        assert equivariant_bound(dim, context, layers) == least


def test_terms():
    assert terms_of(2) == [(1, ()), (1, (1,)), (2, ())]
    assert len(terms_of(3)) == 7 and (1, (2,)) in terms_of(3) and (1, (1, 1)) in terms_of(3)
