"""Searches for single heads and proofs that none is below a level; section 5's layer."""

from random import Random

import pytest
from flint import fmpq

from icl.checks.lds.optimum_s import OptimumS
from icl.checks.lds.pcg import Pcg
from icl.errors import InputError
from icl.theory.lds.heads import Heads, is_positive
from icl.theory.lds.kalman import radius
from icl.theory.lds.layer import Layer, gram_moments, hessian_traces, in_pattern, pairs_of
from icl.theory.lds.systems import Noise, covariance, covariance_limit, independent_modes
from icl.theory.rationals import column, dot, identity, matrix
from tests.theory.test_definitions import some

NOISE = Noise(fmpq(1, 4), fmpq(1, 2), fmpq(1, 3))
ALL, THIRD = [True] * 3, fmpq(1, 3)


@pytest.fixture(scope="module")
def heads():
    return Heads(Layer(independent_modes("a", 2, 7, NOISE), 2))


def test_a_head_has_the_best_keys_and_its_risk(heads):
    layer, head = heads.layer, heads.at([fmpq(1), fmpq(2), fmpq(-1, 3)])
    x = layer.coefficients(head.b[0], head.keys[0])
    assert layer.half_risk(x) == head.risk
    for k in range(2):  # the gradient in the keys is 0
        for i in range(3):
            step = [[fmpq(int((k, i) == (row, at))) for at in range(3)] for row in range(2)]
            assert dot(layer.gradient(x), layer.coefficients(head.b[0], step)) == 0


def test_searches_find_what_a_scan_does(heads):
    head, pattern = heads.search(ALL, Random(0)), heads.search(in_pattern(2)[0], Random(0))
    two = heads.search(ALL, Random(0), count=2)
    scanned = min(
        heads.at([fmpq(x, 10), fmpq(y, 10), fmpq(1)]).risk
        for x in range(-20, 21, 2)
        for y in range(-20, 21, 2)
    )
    assert heads.layer.least() <= two.risk < head.risk <= scanned < fmpq(101, 100) * head.risk
    assert pattern.b[0][1] == 0 and pattern.risk >= head.risk * (1 - fmpq(1, 10**12))
    x = sum(
        (heads.layer.coefficients(b, keys) for b, keys in zip(two.b, two.keys, strict=True)),
        0 * heads.layer.linear,
    )
    assert heads.layer.half_risk(x) == two.risk


def test_a_proof_is_found_below_the_least_risk_and_not_above_it(heads):
    least = heads.search(ALL, Random(0))
    for factor, expected in ((1 - fmpq(1, 10**9), True), (1 + fmpq(1, 10**9), False), (fmpq(2), False)):
        assert heads.all_above(factor * least.risk, ALL) == expected
        assert (heads.determinant(least.b[0], factor * least.risk) > 0) == expected
    b, level = [fmpq(1), fmpq(-3), fmpq(2)], fmpq(1, 10)
    head = heads.at(b)
    D = heads._design(b)
    F = D.transpose() * heads.layer.form * D
    assert heads.determinant(b, level) == F.det() * 2 * (head.risk - level)


@pytest.mark.parametrize("gap", [fmpq(1, 10**12), fmpq(1, 7)])
def test_a_polynomial_is_positive_where_it_is(gap):
    def bowl(x, y=THIRD):
        return (3 * x - 1) ** 2 * (2 - x) + (x - y) ** 2 + gap

    for variables in (1, 2):
        assert is_positive(bowl, 4, variables)
        assert not is_positive(lambda *at: bowl(*at) - 2 * gap, 4, variables)
        assert not is_positive(lambda *at: -bowl(*at), 4, variables)
    assert is_positive(lambda x: x**2 + gap, 2, 1) and not is_positive(lambda x: x**2, 2, 1)


@pytest.mark.parametrize("statement", [OptimumS, Pcg])
def test_a_singular_risk_is_refused(statement):
    still = {"process_noise": 0.0, "observation_noise": 0.0, "initial_variance": 1.0}
    with pytest.raises(InputError, match="singular"):
        statement(dim=1, length=8, **still).decide()


def test_the_limit_is_that_of_the_covariances():
    A, c = some(1, 2, 2) / 4, column([1, 3])
    S = covariance_limit(A, identity(2))
    assert A * S * A.transpose() + identity(2) == S
    C = covariance(A, c, 60, Noise(fmpq(1), fmpq(0), fmpq(5)), identity(2))
    assert abs(C[-1][-1] / (c.transpose() * S * c)[0, 0] - 1) < fmpq(1, 10**6)
    assert float(radius(matrix([[0, 1], [-1, 0]]))) == pytest.approx(1)


def test_second_moments_of_the_gram_matrix_are_those_of_the_form():
    """At window 1 the form with y_(T-1) replaced by 1: one token, its products' moments by pairings."""
    C = independent_modes("a", 1, 3, NOISE).nodes[1][1]
    mean, covariance_of = gram_moments(C, 1)
    pairs = pairs_of(1)
    for i, (a, b) in enumerate(pairs):
        assert mean[i] == C[a][b]
        for j, (e, f) in enumerate(pairs[: i + 1]):
            assert covariance_of[i][j] == C[a][e] * C[b][f] + C[a][f] * C[b][e]
    assert hessian_traces(C, 1) == [C[0][0], 3 * C[0][0] ** 2]
    C = independent_modes("a", 1, 4, NOISE).nodes[1][1]
    squares = 3 * C[0][0] ** 2 + 3 * C[1][1] ** 2 + 2 * C[0][0] * C[1][1] + 4 * C[0][1] ** 2
    assert hessian_traces(C, 2) == [C[0][0] + C[1][1], squares]
