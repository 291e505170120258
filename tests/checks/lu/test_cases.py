"""Settings at which every check of lu holds or fails, and mutants that must turn its verdict."""

import math
from dataclasses import replace

import numpy as np
import pytest

from icl.algorithms import DiscreteMMSE
from icl.checks.lu import exact_risk, ridge, transition
from icl.checks.lu.exact_risk import ExactRisk
from icl.checks.lu.finite_d import FiniteD
from icl.checks.lu.nonmonotone import Nonmonotone
from icl.checks.lu.optimum import Optimum
from icl.checks.lu.ridge import Ridge
from icl.checks.lu.ridgeless_icl import RidgelessIcl
from icl.checks.lu.ridgeless_idg import RidgelessIdg
from icl.checks.lu.support import pretraining
from icl.checks.lu.support.extrapolation import Means
from icl.checks.lu.support.pretraining import Pretraining, few_prompts, many_prompts
from icl.checks.lu.threshold import Threshold
from icl.checks.lu.transition import Transition
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.lu.finite import FiniteRisk, TaskMoments
from icl.theory.lu.leave_one_out import LeaveOneOut
from icl.theory.lu.limits import Limit
from tests.checks.asking import Case, Holds, Mutant, Mutants, mutants_test, settings_test

SMALL = {"dims": [8, 12, 16, 24], "draws": 50}
ELSEWHERE = [
    {"alpha": 4, "kappa": 1.5, "tau": 2, "rho": 0.2},
    {"alpha": 30, "kappa": 4, "tau": 0.7, "rho": 0},
]
ONE = {"alpha": 2, "kappa": 0.5, "rho": 0.3}


def other_error(name):
    right = getattr(Limit, name).fget
    return property(lambda self: 1.5 * right(self))


def half_noise(right, self, rng, w_ND):
    """Draw prompts with a quarter of the noise."""
    return right(replace(self, rho=self.rho / 4), rng, w_ND)


def limiting(self):
    """Return B without its terms of order 1/l."""
    B_HH = np.diag([*[self.tasks.s * len(self.tasks.sw_D) / self.examples] * len(self.tasks.sw_D), 0.0])
    B_HH[:-1, :-1] += self.tasks.R_DD
    B_HH[-1, -1] = self.tasks.s_squared
    return B_HH


def d_squared(right, self, rng):
    """Put the peak at d^2 prompts."""
    new, old = right(self, rng)
    return new / (1 + abs(self.prompts - self.dim**2)) ** 4, old


CASES = {
    FiniteD: Case(
        Holds({}, {"alpha": 2, "tau": 1.5, "rho": 0.3, "ridge": 0.1}, dims=[8, 12, 16], draws=60),
        Mutants(
            Mutant(LeaveOneOut, "error", lambda right, self, rng, draws: right(self, rng, 99) + 1 / self.dim),
            dims=[8, 12, 16], draws=60,
        ),
    ),
    RidgelessIcl: Case(
        Holds({}, *ELSEWHERE, **SMALL),
        Mutants(
            Mutant(Limit, "icl", other_error("icl")),
            Mutant(Pretraining, "draw_prompts", half_noise),
            alpha=10, kappa=2, rho=0.5, **SMALL,
        ),
    ),
    RidgelessIdg: Case(
        Holds({}, *ELSEWHERE, **SMALL),
        Mutants(
            Mutant(Limit, "idg", other_error("idg")),
            Mutant(Pretraining, "draw_prompts", half_noise),
            alpha=10, kappa=2, rho=0.5, **SMALL,
        ),
    ),
    Ridge: Case(
        Holds({}, {"ridge": 1.0}, {"tau": 2, "ridge": 0.5}, {"tau": 1.2, "ridge": 0.5, "kappa": 3}, **SMALL),
        Mutants(
            Mutant(Limit, "ridge", lambda right, self, ridge: [1.5 * right(self, ridge)[0]]),
            Mutant(Limit, "effective_ridge", lambda right, self, ridge: 2 * right(self, ridge)),
            Mutant(ridge, "quartic_roots", lambda right, limit, ridge: [], of="root_error"),
            Mutant(ridge, "quartic_roots", lambda right, limit, ridge: 2 * right(limit, ridge), of="roots"),
            **SMALL,
        ),
    ),
    ExactRisk: Case(
        Holds(
            {}, {"law": "gaussian"}, {"dim": 1, "context": 1, "tasks": 1, "seed": 1},
            {"dim": 2, "context": 30, "rho": 0}, {"dim": 30, "context": 3, "tasks": 200},
            samples=50_000,
        ),
        Mutants(
            Mutant(FiniteRisk, "B_HH", property(limiting)),
            Mutant(TaskMoments, "of", classmethod(lambda cls, w, rho: TaskMoments.new(w.shape[1], rho))),
            Mutant(exact_risk, "token_losses", lambda right, rng, w, n, rho, G: right(rng, w, n, 2 * rho, G)),
            rho=0.5, samples=50_000,
        ),
    ),
    Optimum: Case(
        Holds({}, {"kappa": 2}, ONE, {"kappa": 1, "alpha": 100}, dims=[16, 32, 48, 64]),
        Mutants(
            Mutant(FiniteRisk, "best", lambda right, self: 2 * right(self)),
            Mutant(Limit, "icl", other_error("icl")),
            dims=[16, 32, 48],
        ),
    ),
    Threshold: Case(
        Holds({}, {"dim": 3}, {"dim": 10, "kappa": 3, "alpha": 1}, {"rho": 0.5}),
        Mutants(Mutant(Pretraining, "errors", d_squared, of="above_d_squared")),
    ),
    Transition: Case(
        Holds({}, {"dim": 2, "rho": 0.5}, {"kappas": [0.3, 1], "seed": 2}, {"rho": 0}),
        Mutants(
            Mutant(Limit, "idg", property(lambda self: 0.0)),
            Mutant(FiniteRisk, "best", lambda right, self: 0.9 * right(self), of="finite_error"),
            Mutant(transition, "to_nearest", lambda right, *w: (0.5 * right(*w)[0], 1e-3), of="dmmse_margin"),
        ),
    ),
    Nonmonotone: Case(
        Holds({}, {"kappa": 0.2, "tau": 2}, {"tau": 20, "alpha": 300, "dim": 8}, draws=60),
        Holds({"kappa": 50, "tau": 50, "rho": 0.01}, verdict="fails", draws=20, dim=6),
        Mutants(
            Mutant(Pretraining, "errors", lambda right, self, rng: (1.0 + rng.normal(), 0), "undecided"),
            Mutant(Limit, "icl", property(lambda self: 1 / self.alpha)),
            draws=20,
        ),
    ),
}  # fmt: skip

test_every_check_at_its_settings = settings_test(CASES)
test_every_mutant_is_seen = mutants_test(CASES)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize(("dim", "prompts"), [(1, 5), (3, 4), (3, 12), (4, 60), (5, 1200)])
def test_both_solutions_are_that_of_the_features_themselves(dim, prompts, ridge):
    """Build the n x d (d + 1) matrix of features and solve for the weights of least norm."""
    sizes = Pretraining(dim, 7, 3, prompts, 0.1, ridge)
    rng = np.random.default_rng(dim)
    w_KD = sizes.draw_tasks(rng, 3)
    blocks = [
        sizes.draw_prompts(rng, w_KD[rng.integers(3, size=n)]) for n in (prompts // 2, prompts - prompts // 2)
    ]
    x_ND, h_NH, y_N = (np.concatenate(part) for part in zip(*blocks, strict=True))
    F_NP = np.einsum("nd,nh->ndh", x_ND, h_NH).reshape(prompts, -1)
    shift = prompts * ridge / dim
    if ridge:
        plain_P = np.linalg.solve(F_NP.T @ F_NP + shift * np.eye(F_NP.shape[1]), F_NP.T @ y_N)
    else:
        plain_P = np.linalg.lstsq(F_NP, y_N)[0]
    ways = [few_prompts] * (ridge > 0 or prompts <= dim * (dim + 1))
    ways += [many_prompts] * (ridge > 0 or prompts > dim * (dim + 1))
    for way in ways:
        assert np.allclose(way(iter(blocks), dim, shift).ravel(), plain_P, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_prompts_drawn_without_tokens_have_the_moments_of_those_with(law):
    """Compare means of products of the features with B, and with tokens by ExactRisk's own test."""
    sizes = Pretraining(3, 4, None, 1, 0.5, law=law)
    rng, N = np.random.default_rng(5), 400_000
    x_ND, h_NH, y_N = sizes.draw_prompts(rng, sizes.draw_tasks(rng, N))
    finite = FiniteRisk(TaskMoments.new(3, 0.5, law), 4)
    for i in range(4):
        for j in range(i, 4):
            terms_N = h_NH[:, i] * h_NH[:, j]
            assert abs(terms_N.mean() - finite.B_HH[i, j]) < 4.5 * terms_N.std() / N**0.5
    Gamma_DH = rng.standard_normal((3, 4)) / 3
    loss_N = np.square(y_N - ((x_ND @ Gamma_DH) * h_NH).sum(1))
    assert abs(loss_N.mean() - finite.risk(Gamma_DH)) < 4.5 * loss_N.std() / N**0.5


def test_balanced_tasks_have_equally_many_prompts():
    sizes = Pretraining(4, 9, 3, 50, 0.1, draw="balanced")
    seen = []
    draw = pretraining.Pretraining.draw_prompts
    w_KD = sizes.draw_tasks(np.random.default_rng(0), 3)

    class Watched(Pretraining):
        def draw_prompts(self, rng, w_ND):
            seen.append(w_ND)
            return draw(self, rng, w_ND)

    list(Watched(4, 9, 3, 50, 0.1, draw="balanced")._blocks(np.random.default_rng(1), w_KD))
    counts = [(np.concatenate(seen) == w_D).all(1).sum() for w_D in w_KD]
    assert sum(counts) == 50 and max(counts) - min(counts) == 1


def test_pretraining_on_many_prompts_finds_the_best_weights():
    sizes = Pretraining(3, 6, 2, 200_000, 0.3)
    Gamma_DH, w_KD = sizes.fit(np.random.default_rng(2))
    old = FiniteRisk(TaskMoments.of(w_KD, 0.3), 6)
    assert 1 < old.risk(Gamma_DH) / old.risk(old.best()) < 1.0005


def test_the_extrapolation_is_that_of_a_polynomial_with_its_standard_error():
    """Fit polynomials exactly, and compare the standard error with the spread over drawn means."""
    dims, stderr_C = [4, 6, 8, 12], np.array([0.1, 0.2, 0.1, 0.3])
    true_C = 3 + 2 / np.array(dims) - 7 / np.array(dims) ** 2
    assert Means(dims, true_C, stderr_C).at_infinity()[0] == pytest.approx(3)
    assert Means(dims, true_C, stderr_C).misfit == pytest.approx(0, abs=1e-9)
    rng = np.random.default_rng(0)
    drawn = [Means(dims, true_C + stderr_C * rng.standard_normal(4), stderr_C) for _ in range(2000)]
    values = np.array([means.at_infinity()[0] for means in drawn])
    assert values.std() == pytest.approx(drawn[0].at_infinity()[1], rel=0.06)
    assert np.mean([means.misfit**2 for means in drawn]) == pytest.approx(1, rel=0.12)


def test_the_second_search_finds_the_one_root_to_ten_digits_at_any_size():
    """Draw settings over many decades; with a small ridge the other solution of the quadratic is near."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        drawn = 10 ** rng.uniform([-1, -1.5, -1.5, -3, -7], [4, 2, 1.7, 0.5, 2])
        alpha, kappa, tau, rho, lam = drawn.tolist()
        limit = Limit(alpha, kappa, tau, rho)
        assert ridge.quartic_roots(limit, lam) == pytest.approx([limit.effective_ridge(lam)], rel=1e-10)


def test_on_long_prompts_dmmse_errs_by_the_distance_from_the_nearest_task():
    """Compare the loss of the posterior mean on new tasks less that on old ones."""
    d, N = 5, 20_000
    law = LinearRegression(
        d, 100_000, covariance=(np.eye(d) / d).tolist(), label_noise=0.01, tasks=8, task_law="sphere"
    ).law([3])
    model = DiscreteMMSE(law.tasks_RKD, 0.01, 100_000)
    loss_N = [
        (model.predict(prompt) - prompt.target_RB).square()[0].numpy()
        for prompt in (source.gram_prompts([generator(3, "eval")], N) for source in (law.new_tasks, law))
    ]
    new_ND = Pretraining(d, 1, None, 1, 0.01).draw_tasks(np.random.default_rng(0), N)
    mean, stderr = transition.to_nearest(law.tasks_RKD[0].numpy(), new_ND)
    gap = loss_N[0].mean() - loss_N[1].mean()
    assert abs(gap - mean) < 4.5 * np.hypot(stderr, loss_N[0].std() / N**0.5)


def test_settings_at_which_nothing_is_said_are_refused():
    for check, given, words in (
        (RidgelessIcl, {"tau": 1.05}, "check.tau=1.05"),
        (RidgelessIcl, {"dims": [8, 16]}, "check.dims"),
        (RidgelessIdg, {"dims": [16, 8, 24]}, "check.dims"),
        (RidgelessIdg, {"kappa": math.inf}, "check.kappa"),
        (RidgelessIcl, {"alpha": 0}, "check.alpha"),
        (Ridge, {"ridge": 0}, "check.ridge"),
        (Optimum, {"dims": [8, 16, 2000]}, "check.dims"),
        (FiniteD, {"ridge": 0}, "check.ridge"),
        (Transition, {"kappas": []}, "check.kappas"),
        (Transition, {"kappas": [200.0]}, "check.kappas"),
        (ExactRisk, {"law": "cube"}, "check.law"),
        (ExactRisk, {"samples": 10}, "check.samples"),
    ):
        with pytest.raises(InputError, match=words):
            check(**given)
