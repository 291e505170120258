"""Tests that sizes that no formula is about are refused, with the argument's name and value."""

from fractions import Fraction

import numpy as np
import pytest

from icl.theory.ahn.equivariant_bound import equivariant_bound
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadrature import gauss_rule, recurrence
from icl.theory.wishart import product_moment, trace_moment

RNG, polynomial = np.random.default_rng(0), InvariantRisk(5, 20, 2)

REFUSED = [
    (lambda: isotropic_step(3, 0), "context=0"),
    (lambda: isotropic_step(0, 3), "dim=0"),
    (lambda: equivariant_bound(2, 3, 0), "layers"),
    (lambda: InvariantRisk(5, 20, 5, with_b=True), "layers=5"),
    (lambda: InvariantRisk(5, 20, 0), "layers=0"),
    (lambda: InvariantRisk(0, 20, 1), "dim=0"),
    (lambda: polynomial.value([0.3]), "a has 1"),
    (lambda: InvariantRisk(5, 20, 2, with_b=True).value([0.3, 0.2]), "beta has 0"),
    (lambda: polynomial.value([0.3, 0.2], [0.1]), "no B"),
    (lambda: InvariantRisk(5, 20, 2, with_b=True).optimum(), "without B"),
    (lambda: polynomial.minimise(RNG, starts=0), "starts=0"),
    (lambda: recurrence([Fraction(1)] * 5, 3), "take 6 moments"),
    (lambda: gauss_rule([Fraction(1)] * 4, 2), "more than 1 points"),
    (lambda: gauss_rule([Fraction(1)] * 200, 65), "count=65"),
    (lambda: product_moment([20, 11], 5, 20), "visits every partition"),
    (lambda: trace_moment(401, 5, 20), "degree=401"),
    (lambda: trace_moment(2, 0, 3), "dim=0"),
    (lambda: product_moment([2], 3, 0), "freedom=0"),
    (lambda: product_moment([2, -1], 3, 3), "negative"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
