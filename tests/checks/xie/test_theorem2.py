import pytest
import torch

from icl.checks.xie import theorem2
from icl.checks.xie.support import saturation
from icl.checks.xie.support.factorised_moment import factorised_gradient
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.theorem2 import Theorem2
from tests.checks.asking import Mutant, holds, seen


@holds(
    Theorem2,
    {},
    {"dim": 1, "contexts": [1, 2]},
    {"dim": 2, "contexts": [1, 30, 10**7], "prior_mean": [0.0, -3.0]},
    {"dim": 5, "prior_mean_norm": 0.01},
    {"dim": 4, "prior_mean_norm": 50.0},
    verdict="fails",
    of="gradient_norm_in_the_limit",
    margin=1e4,
)
def test_fails_at_weights_whose_risk_is_exactly_of_order_one_over_c(check, finding):
    measured, d, square = finding.measured, check.dim, float(check.law.mean_RD.square().sum())
    assert measured["contexts"] == check.contexts
    exact = [(d * (d + 1) + 2 * square / d) / C for C in check.contexts]
    assert measured["risk_by_context"] == pytest.approx(exact, rel=1e-6)
    assert measured["risk_slope"] == pytest.approx(-1, abs=1e-6)
    assert measured["gradient_norm_slope"] == pytest.approx(-1, abs=1e-5)
    least = [d * (d + 1) / (C + d + 1) + 2 * square / (d * C + 2) for C in check.contexts]
    assert measured["risk_at_minimiser_by_context"] == pytest.approx(least, rel=1e-6)
    assert measured["weights_norm"] > 1
    assert measured["gradient_norm_in_the_limit"] < finding.bound.value
    assert measured["risk_of_control"] == pytest.approx(square)
    assert measured["factorised_gradient_norm"] > 1e4 * finding.bound.value
    assert measured["gradient_norm_at_zero_weights"] == 0
    assert measured["gradient_norm_at_random_weights"] > 1e4 * finding.bound.value
    # one head is stationary in the limit whatever the dimension
    exact = [(d + 1) * (d + square) / C for C in check.contexts]
    assert measured["one_head_risk_by_context"] == pytest.approx(exact, rel=1e-5)
    head = [matrix[None] for matrix in theorem2.one_step_gd(torch.zeros(d).double(), 1.0)]
    risk_bound, bound = check._at(theorem2.LIMIT).rounding_at(*head)
    assert measured["one_head_risk_in_the_limit"] < risk_bound
    assert measured["one_head_gradient_norm_in_the_limit"] < bound


def trivial(right, case):
    """At finite C the stationary point of zero weights: the check says that its own are the minima."""
    return tuple((case.context == theorem2.LIMIT) * M for M in right(case))


def doubled_at_10(right, case):
    return tuple((1 + (case.context == 10)) * M for M in right(case))


HEAD, MINIMISERS = "one_head_gradient_norm_in_the_limit", "largest_gradient_of_minimisers"

test_weights_with_another_constant_refute_nothing = seen(
    Theorem2,
    *(
        Mutant(saturation, "optimal_matrices", wrong, "undecided")
        for wrong in (
            lambda right, *given: (1 + 1e-6) * right(*given),
            lambda right, w, v, b, C: right(w, v, b, min(C, 10**8)),
            lambda right, w, v, b, C: right(w, w, b, C),  # no guess at the constant: eq. (7)
        )
    ),
    Mutant(Saturation, "at", lambda right, *of: (right(*of)[0], 1e-99), "undecided"),  # blind to gradients
    Mutant(theorem2, "one_step_gd", lambda right, w, eta: right(w, eta * (1 + 1e-6)), "undecided", HEAD),
    Mutant(Saturation, "heads", doubled_at_10, "undecided", MINIMISERS),
    Mutant(Saturation, "heads", trivial, "undecided", "largest_excess_of_minimisers"),
    dim=3,
)


def test_the_factorised_moment_at_zero_weights_and_by_hand():
    check = Theorem2(dim=2, prior_mean=[1.0, 0.0])
    limit = check._at(theorem2.LIMIT)
    zero = torch.zeros(2, 3, 3, dtype=torch.float64)
    gradient, least = factorised_gradient(limit, zero, zero)
    assert gradient == 0 and least > 0
    # m_k = E[w_k M(w)], M = [[I, w], [w^T, |w|^2]], w ~ N((1, 0), I); E M has corner |w*|^2 + d = 3.
    mean = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 3]]).double()
    first = torch.tensor([[1, 0, 2], [0, 1, 0], [2, 0, 5]]).double()
    second = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 0]]).double()
    rest = first - (first * mean).sum() / mean.square().sum() * mean
    assert least == pytest.approx(2 * float(rest.square().sum() + second.square().sum()) ** 0.5)
