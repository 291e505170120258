"""Tests of the valley off S, against a Gauss rule over all prompts of two covariates."""

import numpy as np
import pytest
import torch

from icl.checks.ahn.broken_symmetry import BrokenSymmetry
from icl.checks.ahn.support.odd_direction import OddDirection, WeightedPrompts
from icl.errors import InputError
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.plane_rule import plane_rule
from tests.checks.asking import Case, Holds, Mutant, Mutants, blinded, edited, mutants_test, settings_test

SMALL = {"dim": 3, "layers": 2, "context": 6, "prompts": 1000, "samples": 4000, "starts": 8}
CONTEXT, EPS = 9, 0.01
PLANE = OddDirection(2, 2)


CASES = {
    BrokenSymmetry: Case(
        Holds({"layers": 3, "context": 10}, {"seed": 2}, **SMALL),
        Mutants(
            Mutant(
                OddDirection,
                "slope",
                edited(OddDirection.slope, "up_B - down_B", "down_B - up_B"),
                of="slope",
            ),
            Mutant(  # weights whose mean is not 1
                WeightedPrompts,
                "mean",
                lambda right, self, terms_B: right(self, terms_B / 3),
                of="excess",
            ),
            Mutant(
                WeightedPrompts,
                "gradient",
                lambda right, *given: -right(*given),
                verdict="undecided",
                of="least_curvature",
            ),
            blinded(
                BrokenSymmetry, "_control", lambda right, self, a, b, fresh: right(self, a, 0.7 * b, fresh)
            ),
            **SMALL,
        ),
    )
}


test_it_holds_there = settings_test(CASES)
test_a_mutant_is_seen = mutants_test(CASES)


@pytest.fixture(scope="module")
def plane():
    """All prompts of two covariates: two layers have a risk of degree 8."""
    W_JDD, weight_J = (torch.from_numpy(array.copy()) for array in plane_rule(CONTEXT, 8))
    return WeightedPrompts(W_JDD.movedim(0, -1)[None], weight_J * len(weight_J), 1)


@pytest.fixture(scope="module")
def valley(plane):
    minimum = InvariantRisk(2, CONTEXT, 2, with_b=True).minimise(np.random.default_rng(0), 8)[0]
    return PLANE.fit(plane, PLANE.begin(minimum, plane, EPS), EPS)


def test_samples_agree_with_the_rule(plane, valley):
    theta_V, risk = valley
    drawn = WeightedPrompts.draw(np.random.default_rng(1), 2, CONTEXT, 2, 20_000)
    exact, found = PLANE.slope(plane, theta_V, EPS), PLANE.slope(drawn, theta_V, EPS)
    for value in (0, 2):
        assert abs(found[value] - exact[value]) < 4 * found[value + 1]
    assert exact[0] == pytest.approx(risk, rel=1e-2) and exact[2] > 0


def test_a_step_in_c_reaches_its_best_value(plane, valley):
    """Differentiate by c, in which the risk is quadratic: `begin` leaves no slope along it."""
    minimum = InvariantRisk(2, CONTEXT, 2, with_b=True).minimise(np.random.default_rng(0), 8)[0]
    theta_V = PLANE.begin(minimum, plane, 0.3)
    along_c = [PLANE.risk(plane, theta_V + step * np.eye(len(theta_V))[4], 0.3) for step in (-0.1, 0, 0.1)]
    assert along_c[0] == pytest.approx(along_c[2], rel=1e-9) and along_c[1] < along_c[0]


def test_curvatures_are_those_of_the_whole_hessian(plane, valley):
    """Differentiate by all weights at once: the blocks do not mix, one rotation is flat, and the least
    eigenvalues are those of the blocks."""
    theta_V, _ = valley
    M_MDD = PLANE.matrices(torch.from_numpy(theta_V), EPS)
    blocks, places, units = PLANE._blocks(), [], []
    for name in blocks:
        for k, unit_DD in blocks[name]:
            places.append(name)
            step_MDD = torch.zeros_like(M_MDD)
            step_MDD[k] = PLANE._scaled(k, unit_DD, EPS)
            units.append(step_MDD)

    def risk(t_X):
        return plane.terms(M_MDD + torch.einsum("x,xmde->mde", t_X, torch.stack(units))).mean()

    hessian_XX = torch.autograd.functional.hessian(risk, torch.zeros(len(units), dtype=torch.float64)).numpy()
    size_X = np.sqrt(np.abs(np.diag(hessian_XX)))
    unit_XX, found = hessian_XX / np.outer(size_X, size_X), PLANE.curvatures(plane, theta_V, EPS)
    of_vector = np.array(places) == "vector"
    assert np.abs(unit_XX[of_vector][:, ~of_vector]).max() < 1e-6
    flat, least, *_ = np.linalg.eigvalsh(unit_XX[of_vector][:, of_vector])
    assert abs(flat) < 1e-3 and found["vector"] == pytest.approx(least, rel=1e-2)
    family = np.linalg.eigvalsh(unit_XX[~of_vector][:, ~of_vector])[0]
    assert found["family"] == pytest.approx(family, rel=1e-4)


def test_unusable_settings():
    for given in ({"dim": 1}, {"layers": 4}, {"prompts": 10}, {"context": 0}):
        with pytest.raises(InputError):
            BrokenSymmetry(**given)
