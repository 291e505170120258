"""Tests of the risk of one layer applied L times: the Gauss rule in floats, certificates, roots. The exact
formulas have their rows in tests/theory/test_definitions.py."""

from itertools import product

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_poly

from icl.checks.looped.settings import LOWER_FROM, SADDLE_FROM
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.looped.descent import descend, plane_risk
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.limit import best_turn, block_rate, in_alpha, is_centred
from icl.theory.looped.long_prompts import limit_curvature, negative_from
from icl.theory.looped.plane import risk
from icl.theory.looped.search import best_rotation
from icl.theory.rationals import rational
from icl.theory.roots import evaluate, is_positive, least, near, real_roots

SIZES = [(1, 3), (2, 2), (3, 4), (14, 3), (20, 2), (7, 5), (1000, 6)]
A_DD = np.array([[0.7, -0.2], [0.35, 0.9]])
ROTATION, STRETCH = (A_DD[1, 0] - A_DD[0, 1]) / 2, np.hypot((0.7 - 0.9) / 2, (0.35 - 0.2) / 2)


@pytest.mark.parametrize(("n", "L"), SIZES)
def test_the_rule_and_its_gradient_are_those_of_the_polynomial(n, L) -> None:
    rule = plane_risk(n, L)
    exact = float(risk(L, n, *map(rational, (0.8, ROTATION, float(STRETCH)))))
    found, slope_DD = rule.with_gradient(A_DD)
    assert found == pytest.approx(exact, rel=1e-12)
    for i, j in product(range(2), repeat=2):
        step = np.zeros((2, 2))
        step[i, j] = 1e-6
        above, below = (rule.with_gradient(A_DD + s * step)[0] for s in (1, -1))
        numeric = (above - below) / 2e-6
        assert slope_DD[i, j] == pytest.approx(numeric, rel=1e-6)


def test_descent_lowers_the_risk_and_turns() -> None:
    path_TDD, risk_T = descend(plane_risk(20, 4), 0.01 * A_DD, 300)
    (stuck_TDD, _) = descend(plane_risk(20, 4), 0.01 * np.eye(2), 300)
    turned_T, kept_T = (np.abs(M_TDD[:, 1, 0] - M_TDD[:, 0, 1]) / 2 for M_TDD in (path_TDD, stuck_TDD))
    assert (np.diff(risk_T) <= 0).all() and turned_T[-1] > 0.3 and kept_T.max() < 1e-12


@pytest.mark.parametrize(("d", "n", "L"), [(1, 5, 3), (3, 2, 4), (5, 20, 6), (10, 50, 2)])
def test_the_scalar_optimum_and_separate_layers_are_those_of_theorem_3_s_set(d, n, L) -> None:
    steps, on_s = EqualSteps(d, n, L), InvariantRisk(d, n, L)
    assert steps.least_risk == pytest.approx(on_s.value([steps.best] * L), rel=1e-12)
    around = [steps.polynomial(rational(steps.best * (1 + t))) for t in (-1e-3, 1e-3)]
    assert min(map(float, around)) > steps.least_risk
    assert float(steps.separate_risk) == pytest.approx(on_s.optimum().risk, rel=1e-10)


def test_there_is_no_antisymmetric_matrix_in_one_dimension() -> None:
    steps = EqualSteps(1, 5, 3)
    assert steps.antisymmetric_curvature == steps.symmetric_curvature == 0


def test_roots_are_counted_and_enclosed() -> None:
    """Compare with polynomials whose roots are known: (x - 1)^2 (x + 2), x^2 + 1, and x^5 - 2."""
    double, none = fmpq_poly([2, -3, 0, 1]), fmpq_poly([1, 0, 1])
    assert [near(x, 3) for x in real_roots(double)] == [-2, 1] and real_roots(none) == []
    assert is_positive(none) and not is_positive(-none) and not is_positive(double)
    (root,) = real_roots(fmpq_poly([-2, 0, 0, 0, 0, 1]))
    assert (root**5).contains(2) and root.rad() < 1e-15
    where, value = least(fmpq_poly([0, 0, -2, 0, 1]) + fmpq_poly([0, fmpq(1, 10)]))  # two minima
    assert where < 0 and value < -1


@pytest.mark.parametrize(("d", "L"), [(2, 2), (2, 6), (3, 3), (5, 4), (10, 2)])
def test_the_curvature_comes_to_its_limit(d, L) -> None:
    steps, n = EqualSteps(d, 10**12, L), fmpq(10**12)
    with ctx.workprec(1024):
        found = evaluate(steps.antisymmetric_curvature, steps.optimum[0]) * arb(n) ** (L - 1)
    assert float(found) == pytest.approx(float(limit_curvature(L)(d)), rel=1e-8)


def test_the_tables_begin_where_the_best_scalar_is_a_saddle_and_where_a_rotation_is_lower() -> None:
    for (d, L), n in SADDLE_FROM.items():
        assert [EqualSteps(d, k, L).curvature_sign() for k in (n - 1, n)] == [1, -1], (d, L)
    for d, L in ((2, 3), (3, 3), (4, 3), (5, 3), (2, 5), (2, 7)):
        n = LOWER_FROM[d, L]
        assert n < SADDLE_FROM[d, L]
        assert [best_rotation(EqualSteps(d, k, L)).planes > 0 for k in (n - 1, n)] == [False, True], (d, L)


def test_a_polynomial_is_negative_from_a_dimension_on() -> None:
    falling = fmpq_poly([4, 0, -1])  # 4 - d^2
    assert [negative_from(falling, first) for first in (1, 2, 3)] == [False, False, True]


@pytest.mark.parametrize("L", [2, 3, 4, 6])
def test_the_risk_in_the_plane_comes_to_its_limit(L) -> None:
    root, alpha, beta = 10**9, fmpq(3, 5), fmpq(7, 4)
    found = root ** (2 * L) * risk(L, root**2, 1 + alpha / root, beta / root)
    limit = sum(poly(beta**2) * alpha ** (2 * i) for i, poly in enumerate(in_alpha(L)))
    assert float(found) == pytest.approx(float(limit), rel=1e-6) and is_centred(L)


def test_no_certificate_where_alpha_might_lower_the_risk(monkeypatch) -> None:
    right = in_alpha(4)
    turned = [right[0], right[1] - fmpq_poly([0, right[1](2)]), *right[2:]]
    monkeypatch.setattr("icl.theory.looped.limit.in_alpha", lambda layers: turned)
    assert not is_centred(4)
    least_risk = best_turn(4)[1] * right[0](0)
    for share, certain in (
        (fmpq(101, 100), True),
        (fmpq(99, 100), False),
    ):  # of 2 (t - 1)^4 where t is a root
        t = 1 + near((share * least_risk / 2) ** arb(0.25), 30)
        turned = [right[0], fmpq_poly([t, -1])]
        assert t > 1 and is_centred(4) is certain


@pytest.mark.parametrize("g", [0.05, 0.55, 0.9, 1.0, 2.5])
def test_the_rate_of_a_block_rotation_is_that_of_the_curve(g) -> None:
    x, y = np.meshgrid(np.linspace(0, 3, 1501), np.linspace(0, 3, 1501))
    w = x + 1j * y + 1e-9
    mean = (abs(w - 1j * g**0.5) ** -2 + abs(w + 1j * g**0.5) ** -2) / 2
    rate = (abs(w + w / (w * w + g))[abs(mean - 1) < 0.01] ** 2).max()
    assert float(block_rate(rational(g))) == pytest.approx(rate, rel=0.02)
