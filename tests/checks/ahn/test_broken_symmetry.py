"""Tests of the valley off S, against a Gauss rule over all prompts of two covariates."""

import numpy as np
import pytest
import torch

from icl.checks.ahn.odd_direction import OddDirection
from icl.models.ahn.random_starts import WeightedPrompts
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.plane_rule import plane_rule

CONTEXT, EPS = 9, 0.01
PLANE = OddDirection(2, 2)


@pytest.fixture(scope="module")
def plane():
    """All prompts of two covariates: two layers have a risk of degree 8."""
    W_JDD, weight_J = (torch.from_numpy(array.copy()) for array in plane_rule(CONTEXT, 8))
    return WeightedPrompts(W_JDD.movedim(0, -1)[None], weight_J * len(weight_J), 1)


@pytest.fixture(scope="module")
def valley(plane):
    minimum = InvariantRisk(2, CONTEXT, 2, with_b=True).minimise(np.random.default_rng(0), 8)[0]
    return PLANE.fit(plane, PLANE.begin(minimum, plane, EPS), EPS)


def slope(plane, up_V, down_V):
    ends = [PLANE.matrices(torch.from_numpy(end_V), eps) for end_V, eps in ((up_V, EPS), (down_V, -EPS))]
    return plane.along(ends, 2 * EPS)


def test_samples_agree_with_the_rule(plane, valley):
    drawn = WeightedPrompts.draw(np.random.default_rng(1), 2, CONTEXT, 2, 20_000)
    pairs = zip(slope(plane, valley, valley), slope(drawn, valley, valley), strict=True)
    assert all(abs(found.mean - exact.mean) < 4 * found.stderr for exact, found in pairs)


def test_blocks_are_what_a_rotation_of_the_others_keeps_apart():
    blocks = OddDirection(3, 2).blocks()
    (one, *_), (other, *_) = ([X for _, X in blocks[name]] for name in ("symmetric", "antisymmetric"))
    assert torch.equal(one.mT, one) and torch.equal(other.mT, -other)
    for X in (one, other):
        assert X.any() and not X[0].any() and not X[:, 0].any() and X.trace() == 0
    assert [len(blocks[name]) for name in ("vector", "family")] == [6, 5]


def test_an_error_of_the_fit_is_not_seen_in_the_slope_along_the_floor(plane, valley):
    """Move the fit: the slope at the same scalars changes in the first order, that along the floor does
    not."""
    up_V, down_V = (PLANE.fit(plane, valley, eps) for eps in (EPS, -EPS))
    assert slope(plane, up_V, down_V)[1].mean > 0
    off_V = 1e-3 * np.random.default_rng(3).standard_normal(len(valley))
    floor, fixed = (
        [slope(plane, up + sign * off_V, down + sign * off_V)[1].mean for sign in (1, -1)]
        for up, down in ((up_V, down_V), (valley, valley))
    )
    assert abs(floor[0] - floor[1]) < 0.05 * abs(fixed[0] - fixed[1])


def test_a_step_in_c_reaches_its_best_value(plane, valley):
    """Differentiate by c, in which the risk is quadratic: `begin` leaves no slope along it."""
    minimum = InvariantRisk(2, CONTEXT, 2, with_b=True).minimise(np.random.default_rng(0), 8)[0]
    theta_V = PLANE.begin(minimum, plane, 0.3)
    along_c = [PLANE.risk(plane, theta_V + step * np.eye(len(theta_V))[4], 0.3) for step in (-0.1, 0, 0.1)]
    assert along_c[0] == pytest.approx(along_c[2], rel=1e-9) and along_c[1] < along_c[0]


def test_curvatures_are_those_of_the_whole_hessian(plane, valley):
    """Differentiate by all weights at once: the blocks do not mix, one rotation is flat, and the least
    eigenvalues are those of the blocks."""
    M_MDD = PLANE.matrices(torch.from_numpy(valley), EPS)
    blocks, places, units = PLANE.blocks(), [], []
    for name in blocks:
        for k, unit_DD in blocks[name]:
            places.append(name)
            step_MDD = torch.zeros_like(M_MDD)
            step_MDD[k] = unit_DD
            units.append(step_MDD)

    def risk(t_X):
        return plane.terms(M_MDD + torch.einsum("x,xmde->mde", t_X, torch.stack(units))).mean()

    hessian_XX = torch.autograd.functional.hessian(risk, torch.zeros(len(units), dtype=torch.float64)).numpy()
    size_X = np.sqrt(np.abs(np.diag(hessian_XX)))
    unit_XX = hessian_XX / np.outer(size_X, size_X)
    found = {name: PLANE.least(plane, M_MDD, block) for name, block in blocks.items()}
    assert PLANE.least_curvature(plane, valley, EPS) == min(found.values())
    of_vector = np.array(places) == "vector"
    assert np.abs(unit_XX[of_vector][:, ~of_vector]).max() < 1e-6
    flat, least, *_ = np.linalg.eigvalsh(unit_XX[of_vector][:, of_vector])
    assert abs(flat) < 1e-3 and found["vector"] == pytest.approx(least, rel=1e-2)
    family = np.linalg.eigvalsh(unit_XX[~of_vector][:, ~of_vector])[0]
    assert found["family"] == pytest.approx(family, rel=1e-4)
