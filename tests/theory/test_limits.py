"""Tests that sizes that no formula of theory or tasks is about are refused, with the argument's name and
value."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from icl.algorithms import LogisticLoss
from icl.tasks.distances import distance_to_identity, inverse_symmetric_root, symmetric_root
from icl.tasks.estimators import norm_and_stderr
from icl.tasks.expected_traces import expected_word, sparse_a_risk
from icl.tasks.moment_tensors import moment_tensors
from icl.tasks.quadratic import QuadraticRisk
from icl.theory.ahn.equivariant_bound import equivariant_bound
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadrature import gauss_rule, recurrence
from icl.theory.wishart import product_moment, trace_moment

RNG, polynomial = np.random.default_rng(0), InvariantRisk(5, 20, 2)
EYE, TWO = torch.eye(3).double(), torch.eye(2).double()
FLAT = torch.diag(torch.tensor([1.0, 0.0]).double())
ONES = torch.ones(1, 3, 2).double(), torch.ones(1, 3).double()
ZERO = torch.zeros(2, 2, 2).double()
BARE = QuadraticRisk.from_moments(torch.zeros(2, 2, 2, 2, 2, 2).double(), ZERO, 1.0)
regression = QuadraticRisk.linear_regression

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
    (lambda: inverse_symmetric_root(FLAT), "singular"),
    (lambda: symmetric_root(-FLAT), "negative"),
    (lambda: symmetric_root(torch.tensor([[1.0, 0.5], [0.0, 1.0]])), "not symmetric"),
    (lambda: distance_to_identity(torch.ones(2, 3)), "square"),
    (lambda: moment_tensors(torch.zeros(2), EYE), "covariance has shape"),
    (lambda: regression(EYE, TWO, 5), "Sigma_w has shape"),
    (lambda: regression(EYE, EYE, 5, prior_mean=torch.zeros(2)), "must have length 3"),
    (lambda: regression(EYE, EYE, 0), "context=0"),
    (lambda: regression(torch.eye(64), torch.eye(64), 5), "dim=64"),
    (lambda: QuadraticRisk.from_moments(torch.zeros([2] * 6), torch.zeros(3, 2, 2), 1.0), "form has shape"),
    (lambda: regression(EYE, EYE, 5).best_with_heads(0, RNG), "heads=0"),
    (lambda: regression(EYE, EYE, 5).best_with_values(torch.ones(2, 3)), "must be 2 x 4"),
    (lambda: BARE.value(ZERO, ZERO[0, 0]), "free read-out"),
    (lambda: norm_and_stderr(torch.ones(2, 1, 1)), "2 chunks"),
    (lambda: expected_word([TWO] * 7, TWO, 3), "length 7"),
    (lambda: expected_word([TWO], TWO, 0), "context=0"),
    (lambda: sparse_a_risk(TWO.expand(4, 2, 2), TWO, TWO, 3), "layers=4"),
    (lambda: LogisticLoss(*ONES, 0.0), "mu"),
    (lambda: LogisticLoss(ONES[0], 0 * ONES[1], 0.1), "labels"),
    (lambda: LogisticLoss(ONES[0], ONES[1][:, :2], 0.1), r"\(B, N, D\), \(B, N\)"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
