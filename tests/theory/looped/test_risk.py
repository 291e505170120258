"""Tests of the risk of one layer applied L times: rationals, a Gauss rule, Bartlett's factors, tokens."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.looped.equal_steps import EqualSteps, antisymmetric
from icl.theory.looped.plane import PlaneRisk
from icl.theory.looped.polynomials import is_positive, polynomial, real_roots, root_near, value
from icl.theory.looped.weighted import WeightedRisk

SIZES = [(1, 3), (2, 2), (3, 4), (14, 3), (20, 2), (7, 5), (1000, 6)]
A_DD = np.array([[0.7, -0.2], [0.35, 0.9]])
ROTATION, STRETCH = (A_DD[1, 0] - A_DD[0, 1]) / 2, np.hypot((0.7 - 0.9) / 2, (0.35 - 0.2) / 2)


def bartlett(n, A, L):
    """Return f(A) in rationals from W's triangular factor: W11 = t^2, W12 = t z, W22 = z^2 + r^2."""
    M = [[{(0, 0, 0): F(i == j)} for j in range(2)] for i in range(2)]
    G = [
        [{(2, 0, 0): F(1, n)}, {(1, 0, 1): F(1, n)}],
        [{(1, 0, 1): F(1, n)}, {(0, 2, 0): F(1, n), (0, 0, 2): F(1, n)}],
    ]
    for i, j, k in product(range(2), repeat=3):
        for powers, c in G[k][j].items():
            M[i][j][powers] = M[i][j].get(powers, F(0)) - A[k][i] * c
    power = M
    for _ in range(L - 1):
        power = [
            [_plus(_times(power[i][0], M[0][j]), _times(power[i][1], M[1][j])) for j in range(2)]
            for i in range(2)
        ]
    squares = [_times(power[i][j], power[i][j]) for i in range(2) for j in range(2)]
    return sum(
        (c * _chi(n, t) * _chi(n - 1, r) * _normal(z) for part in squares for (t, r, z), c in part.items()),
        F(0),
    )


def _times(p, q):
    found = {}
    for (at, c), (other, e) in product(p.items(), q.items()):
        key = tuple(map(sum, zip(at, other, strict=True)))
        found[key] = found.get(key, F(0)) + c * e
    return found


def _plus(p, q):
    return {key: p.get(key, F(0)) + q.get(key, F(0)) for key in p.keys() | q.keys()}


def _chi(n, power):
    """E t^power, t^2 of n degrees of freedom, for even powers; odd ones meet E z^odd = 0."""
    if power % 2:
        return F(0)
    return F(np.prod([n + 2 * k for k in range(power // 2)], dtype=object))


def _normal(power):
    return F(0) if power % 2 else F(np.prod(range(1, power, 2), dtype=object))


@pytest.mark.parametrize(("n", "L"), [(1, 2), (2, 3), (20, 2), (7, 3)])
def test_the_polynomial_is_the_mean_over_bartletts_factors(n, L) -> None:
    a, b, h = F(3, 4), F(1, 5), F(-1, 7)
    assert PlaneRisk(n, L).exact(a, b, h) == bartlett(n, [[a + h, -b], [b, a - h]], L)


@pytest.mark.parametrize(("n", "L"), SIZES)
def test_the_rule_and_its_gradient_are_those_of_the_polynomial(n, L) -> None:
    plane = PlaneRisk(n, L)
    exact = float(plane.exact(F(0.8), F(ROTATION), F(STRETCH)))
    found, slope_DD = plane.rule.with_gradient(A_DD)
    assert found == pytest.approx(exact, rel=1e-12) and plane.rule.value(A_DD) == pytest.approx(
        exact, rel=1e-12
    )
    for i, j in product(range(2), repeat=2):
        step = np.zeros((2, 2))
        step[i, j] = 1e-6
        numeric = (plane.rule.value(A_DD + step) - plane.rule.value(A_DD - step)) / 2e-6
        assert slope_DD[i, j] == pytest.approx(numeric, rel=1e-6)


def test_the_values_of_the_note_are_found_again() -> None:
    """Compare with numbers computed outside this code."""
    at = F(8326, 10000), F(1019, 10000)
    assert PlaneRisk(20, 2).exact(*at) == F(1516075440567119117, 20000000000000000000)
    scalar = EqualSteps(2, 20, 2)
    assert round(scalar.best, 5) == 0.82881 and round(scalar.least_risk, 8) == 0.07601737
    assert round(EqualSteps(2, 20, 3).least_risk, 8) == 0.03049942
    assert [EqualSteps(2, n, 2).curvature_sign() for n in (13, 14, 15, 16)] == [1, 1, -1, -1]


@pytest.mark.parametrize("n", [1, 2, 14, 15, 1000])
def test_the_coefficient_of_b_squared_at_two_layers(n) -> None:
    for a in (F(1, 3), F(9, 10)):
        printed = (
            F(4)
            * (
                a**2 * (n**3 + 10 * n**2 + 39 * n + 46)
                - a * (2 * n**3 + 18 * n**2 + 28 * n)
                + n**3
                + 7 * n**2
            )
            / n**3
        )
        assert value(PlaneRisk(n, 2).coefficient(1, 0), a) == printed


@pytest.mark.parametrize(("n", "L"), SIZES)
def test_equal_steps_and_their_curvatures_are_the_plane_s_at_two_dimensions(n, L) -> None:
    plane, steps = PlaneRisk(n, L), EqualSteps(2, n, L)
    assert steps.polynomial == plane.coefficient(0, 0)
    half = [tuple(c / 2 for c in plane.coefficient(*at)) for at in ((1, 0), (0, 1))]  # |J|^2 = |H|^2 = 2
    assert [steps.antisymmetric_curvature, steps.symmetric_curvature] == half


@pytest.mark.parametrize(("d", "n", "L"), [(1, 5, 3), (3, 2, 4), (5, 20, 6), (10, 50, 2)])
def test_the_scalar_optimum_and_separate_layers_are_those_of_theorem_3_s_set(d, n, L) -> None:
    steps, on_s = EqualSteps(d, n, L), InvariantRisk(d, n, L)
    assert steps.least_risk == pytest.approx(on_s.value([steps.best] * L), rel=1e-12)
    beside = [steps.risk(steps.best * (1 + t)) for t in (-1e-3, 1e-3)]
    assert min(beside) > steps.least_risk
    assert float(steps.separate_risk) == pytest.approx(on_s.optimum().risk, rel=1e-10)


def drawn(d, n, L, count=200_000):
    x_BND = generator(0, "check", d).standard_normal((count, n, d))
    return WeightedRisk(x_BND.mT @ x_BND / n, np.ones(count), L)


@pytest.mark.parametrize(("d", "n", "L"), [(3, 20, 3), (4, 12, 2)])
def test_curvatures_are_those_of_drawn_contexts(d, n, L) -> None:
    """Compare second differences on the same tokens with the polynomials, in more than two dimensions."""
    steps, risk, a, h = EqualSteps(d, n, L), drawn(d, n, L), 0.6, 0.01
    turned = antisymmetric(d, 1.0)
    stretch = np.diag([1.0, -1.0, *[0.0] * (d - 2)])
    for curvature, X_DD in ((steps.antisymmetric_curvature, turned), (steps.symmetric_curvature, stretch)):
        X_DD = X_DD / np.linalg.norm(X_DD)
        here, up, down = (risk.terms(a * np.eye(d) + t * X_DD) for t in (0, h, -h))
        second_B = (up + down - 2 * here) / (2 * h**2)
        error = float(value(curvature, F(a))) - second_B.mean()
        assert abs(error) < 4 * second_B.std() / len(second_B) ** 0.5 + 1e-3 * abs(second_B.mean())


def test_there_is_no_antisymmetric_matrix_in_one_dimension() -> None:
    steps = EqualSteps(1, 5, 3)
    assert steps.antisymmetric_curvature == steps.symmetric_curvature == ()
    assert not antisymmetric(1, 0.3).any() and not antisymmetric(3, [0.3])[:, 2].any()


def test_roots_are_counted_and_enclosed() -> None:
    """Compare with polynomials whose roots are known: (x - 1)^2 (x + 2), x^2 + 1, and x^5 - 2."""
    double = polynomial([2, -3, 0, 1])
    assert (
        real_roots(double) == 2
        and real_roots(double, F(0), F(1)) == 1
        and real_roots(double, F(1), F(9)) == 0
    )
    assert is_positive(polynomial([1, 0, 1])) and not is_positive(polynomial([-1, 0, -1]))
    assert not is_positive(double) and not is_positive(polynomial([]))
    low, high = root_near(polynomial([-2, 0, 0, 0, 0, 1]), F(0), F(2), F(1, 10**12))
    assert low**5 < 2 <= high**5 and high - low <= F(1, 10**12)
