import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.theory import closed_forms
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.closed_forms import (
    isotropic_risk,
    isotropic_step,
    theorem1_preconditioner,
    theorem1_risk,
)
from icl.theory.expected_traces import sparse_a_risk
from tests.theory.changing import sees
from tests.theory.drawing import covariance, eye


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 1000), st.booleans())
def test_equation_6_is_stationary_and_has_the_stated_risk(dim, context, seed, weighted):
    Sigma = covariance(seed, dim)
    Sigma_w = covariance(seed + 1, dim) if weighted else eye(dim)
    argument = (Sigma_w,) if weighted else ()
    A_LDD = theorem1_preconditioner(Sigma, context, *argument)[None].requires_grad_()
    value = sparse_a_risk(A_LDD, Sigma, Sigma_w, context)
    (gradient,) = torch.autograd.grad(value, A_LDD)
    assert float(value.detach()) == pytest.approx(float(theorem1_risk(Sigma, context, *argument)), rel=1e-11)
    assert float(gradient.abs().max()) < 1e-11 * float(Sigma.norm() ** 2 * Sigma_w.norm() + 1)


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (5, 20), (4, 3), (3, 2)])
def test_equation_7_is_the_isotropic_case(dim, context):
    A_DD = theorem1_preconditioner(eye(dim), context)
    assert torch.allclose(A_DD, isotropic_step(dim, context) * eye(dim), rtol=1e-14)
    assert float(theorem1_risk(eye(dim), context)) == pytest.approx(isotropic_risk(dim, context), rel=1e-13)
    best = InvariantRisk(dim, context, 1).optimum()
    assert best.a_L[0] == pytest.approx(isotropic_step(dim, context), rel=1e-14)
    assert best.risk == pytest.approx(isotropic_risk(dim, context), rel=1e-13)


test_a_changed_constant_is_seen = sees(
    closed_forms,
    ("(context + 1) / context * Sigma", "Sigma", 0, test_equation_7_is_the_isotropic_case, (4, 3)),
    (
        "(context + 1) * eigenvalues",
        "context * eigenvalues",
        0,
        test_equation_7_is_the_isotropic_case,
        (4, 3),
    ),
)
