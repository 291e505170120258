"""Settings at which every check of lds holds, and mutants that must turn its verdict."""

from typing import Any

import numpy as np
import torch

from icl.algorithms import ConjugateGradient, KalmanFilter
from icl.checks.lds import forgetting, lemma4_1, lemmaC_1, lemmaD_2, neumann, stationarity
from icl.checks.lds.forgetting import Forgetting, SteadyState
from icl.checks.lds.lemma3_1 import Lemma31
from icl.checks.lds.lemma4_1 import Lemma41
from icl.checks.lds.lemmaC_1 import LemmaC1
from icl.checks.lds.lemmaD_2 import LemmaD2
from icl.checks.lds.lemmaD_3 import LemmaD3
from icl.checks.lds.neumann import Neumann
from icl.checks.lds.one_dimension import OneDimension
from icl.checks.lds.optimum_s import OptimumS
from icl.checks.lds.pcg import Pcg
from icl.checks.lds.stationarity import Stationarity
from icl.checks.lds.support import (
    eq14,
    evidence,
    population,
    position_heads,
    single_heads,
)
from icl.checks.lds.support.pcg_layer import PcgLayer
from icl.checks.lds.theorem4_1 import Theorem41
from icl.checks.lds.toeplitz import Toeplitz
from icl.tasks import dynamical_system as task
from icl.theory import dynamical_system as theory
from icl.theory.lds import single_head_bound
from tests.checks.asking import (
    Case,
    Holds,
    Mutant,
    Mutants,
    blinded,
    mutants_test,
    settings_test,
)
from tests.checks.lds.test_optimum_s import FEW_STARTS
from tests.checks.lds.test_theorem4_1 import SMALL


def noise_added_twice(right, *given):
    y = right(*given)
    return y + 0.1 * torch.from_numpy(np.random.default_rng(0).standard_normal(y.shape))


def longer_start(right, A, c, w, noise, start, T):
    return right(A, c, w, noise, 1.001 * start, T)


def first_without_noise(right, kalman):
    return kalman.start * kalman.A_RBDD @ kalman.A_RBDD.mT


def forgetful(right, method, S, g):
    """Return the search whose second direction forgets the first."""
    return right(ConjugateGradient(method.steps, method.inverse_DD), S, g)


def half_of_the_covariance(right, C_BTT, window):
    mean, covariance = right(C_BTT, window)
    return mean, covariance / 2


def noise_twice(right, law, systems, generators):
    y = right(law, systems, generators)
    extra = np.random.default_rng(0).standard_normal(y.shape)
    return y + law.observation_noise**0.5 * torch.from_numpy(extra)


def noise_twice_in_theory(right, A, c, Sigma_w, noise, *more):
    return right(A, c, Sigma_w, 2 * noise, *more)


def from_y_0(right, value_Q, process, start, length):
    rows = [start + 0 * value_Q]
    for _ in range(length - 1):
        rows.append(value_Q**2 * rows[-1] + process)
    powers = value_Q[:, None] ** torch.arange(length)
    return theory._from_diagonals(torch.stack(rows, 1)[..., None] * powers[:, None])


FROM_Y_0 = {"samples": 40_000, "initial_variance": 1.0}


def lemma_3_1_holds_for_the_repaired_heads_only(check, finding):
    measured = finding.measured
    assert measured["repaired_error"] == measured["shifted_error_first_rows"] == 0
    assert measured["printed_error"] > 0 and measured["shifted_error"] > 0 and measured["masked_error"] > 0
    assert measured["shifted_error_rows_below"] > 0 or check.window == 1


def lemma_d_2_holds(check, finding):
    assert ("mean_error" in finding.measured) == (check.law.setting in "ab")


def lemma_d_2_holds_whichever_noise_is_the_largest(check, finding):
    """Compare with the control, (26) with a quarter of that noise's term."""
    levels = {"Sigma_w": "process_noise", "sigma_v^2": "observation_noise", "Sigma_0": "initial_variance"}
    largest = max(levels, key=lambda term: getattr(check, levels[term]))
    assert largest in finding.control.description


def lemma_d_3_holds(check, finding):
    assert ("exact_order_6" in finding.measured) == (check.law.setting in "ab")


def toeplitz_holds(check, finding):
    assert finding.measured["distances"] == sorted(finding.measured["distances"], reverse=True)


CASES: dict[Any, Case] = {
    Forgetting: Case(
        Holds(
            *({"setting": setting} for setting in "bcd"),
            {"dim": 1, "process_noise": 100.0},
            {"observation_noise": 100.0},
            samples=30,
        ),
        # it sees another gain, and a predictor that is not the best
        Mutants(
            Mutant(SteadyState, "closed", lambda right, one, gain: right(one, 0.99 * gain), of="error_of_3"),
            Mutant(SteadyState, "left_out", lambda right, one: 0.5 * right(one), of="excess_over_term"),
            Mutant(
                SteadyState, "excess", lambda right, one: right(one) + one.variance, of="excess_over_term"
            ),
            Mutant(forgetting, "_radius", lambda right, M: 1.2 * right(M), of="largest_radius"),
            samples=20,
        ),
    ),
    Stationarity: Case(
        Holds({"setting": "b", "dim": 2}, {"dim": 1, "process_noise": 1.0}, samples=20, length=20),
        # it sees another start, another mean, and a mean that converges
        Mutants(
            Mutant(stationarity, "covariances_of_systems", longer_start, of="deviation_error"),
            Mutant(
                theory,
                "covariance_of_modes",
                lambda right, v, p, s, T: right(v, 1.0001 * p, s, T),
                of="mean_error",
            ),
            Mutant(theory, "covariance_of_modes", lambda right, v, *of: right(0.5 * v, *of), of="growth"),
            samples=20,
            length=12,
        ),
    ),
    Neumann: Case(
        Holds({}, {"setting": "c"}, {"window": 4}, verdict="fails", samples=1000),
        Holds(
            {"dim": 1}, process_noise=0.4, observation_noise=0.4, initial_variance=0.4, samples=2000, window=1
        ),
        # it sees another power of the error
        Mutants(
            Mutant(neumann, "relative_error", lambda right, h: right(h).sqrt(), of="identity_error"),
            dim=1,
            process_noise=0.4,
            observation_noise=0.4,
            initial_variance=0.4,
            samples=2000,
            window=1,
        ),
    ),
    OneDimension: Case(
        Holds({}, {"setting": "d", "length": 8}, verdict="fails", samples=1000),
        # steps that are no least squares solution show nothing
        Mutants(blinded(ConjugateGradient, "weights", lambda right, *of: 1.1 * right(*of)), samples=500),
    ),
    Lemma31: Case(
        Holds(
            *({"window": window, "length": length} for window, length in [(1, 3), (1, 7), (3, 9), (4, 30)]),
            samples=5,
            also=lemma_3_1_holds_for_the_repaired_heads_only,
        ),
        # it notices heads that read the target
        Mutants(
            Mutant(position_heads, "restricted", lambda right, *given: position_heads.shift(*given)),
            window=2,
            length=6,
        ),
    ),
    Lemma41: Case(
        # it sees another pattern and a shifted window
        Mutants(
            Mutant(lemma4_1, "parity_mask", lambda right, s: (right(s)[0], right(s)[1] | True)),  # mixed
            Mutant(
                task, "_tokens", lambda right, *of: (right(*of)[0][:, :, 1:], right(*of)[1]), of="grid_error"
            ),
            window=2,
            length=8,
            dim=2,
        ),
    ),
    LemmaC1: Case(
        # it sees systems that are not the paper's
        Mutants(
            Mutant(task, "RATIO", 2.5, of="systems_off"),
            Mutant(task, "HALF_WIDTH", 4.0, of="systems_off"),
            Mutant(
                task, "_well_conditioned", lambda right, *of: (right(*of)[0], 1.001 * right(*of)[1] + 0.001)
            ),
            Mutant(task, "_orthogonal", lambda right, *of: -right(*of)[::-1], of="systems_off"),
            Mutant(
                lemmaC_1,
                "complex_systems",
                lambda right, *of: (torch.eye(3).double().repeat(50, 1, 1), right(*of)[1]),
                verdict="undecided",
                of="least_ratio_complex",
            ),
            dim=3,
            samples=50,
        ),
    ),
    LemmaD2: Case(
        Holds(
            *({"setting": setting} for setting in "abcd"),
            length=8,
            dim=3,
            samples=2000,
            also=lemma_d_2_holds,
        ),
        Holds(
            {"setting": "b", "process_noise": 0, "observation_noise": 0},
            {"observation_noise": 1e6},
            {"initial_variance": 1e6, "setting": "c"},
            {"process_noise": 0, "observation_noise": 0, "dim": 1, "length": 60},
            {"process_noise": 1e-12, "observation_noise": 1e12, "initial_variance": 1e-30},
            samples=500,
            length=20,
            dim=2,
            also=lemma_d_2_holds_whichever_noise_is_the_largest,
        ),
        # it sees noise added twice and a wrong recursion or mean
        Mutants(
            Mutant(task.DynamicalSystemLaw, "observations", noise_added_twice, settings={"samples": 2000}),
            Mutant(theory, "legendre_rule", lambda right, count: right(4), of="mean_error"),
            Mutant(lemmaD_2, "covariances_of_systems", longer_start, of="recursion_error"),
            Mutant(
                theory,
                "covariance_of_modes",
                lambda right, v, p, s, T: right(v, 1.0001 * p, s, T),
                of="mean_error",
            ),
            length=6,
            dim=2,
            samples=500,
        ),
    ),
    LemmaD3: Case(
        Holds(
            *({"setting": setting} for setting in "abcd"),
            length=8,
            dim=2,
            samples=800,
            also=lemma_d_3_holds,
        ),
        # it fails without symmetry
        Mutants(
            Mutant(task, "_eigenvalues", lambda right, rng, spectrum, B, D: right(rng, "positive", B, D)),
            setting="c",
            length=6,
            dim=2,
            samples=400,
        ),
    ),
    OptimumS: Case(
        # another pattern, a shifted window; boxes that are lost, a bound that is too high
        Mutants(
            Mutant(single_heads, "parity_mask", lambda right, window: (~right(window)[0], right(window)[1])),
            Mutant(
                single_head_bound,
                "_halves",
                lambda right, centre, size: (centre[:0], size[:0]),
                "undecided",
                of="control",
            ),
            Mutant(
                single_head_bound,
                "_least_quadratic",
                lambda right, *of: right(*of) + 1,
                "undecided",
                of="control",
            ),
            Mutant(
                task, "_tokens", lambda right, *of: (right(*of)[0][:, :, 1:], right(*of)[1]), of="grid_error"
            ),
            **FEW_STARTS | {"restarts": 1},
        ),
    ),
    Pcg: Case(
        # it fails where the steps are wrong and for the printed form
        Mutants(
            Mutant(ConjugateGradient, "weights", forgetful, of="identity_error"),
            Mutant(KalmanFilter, "_first", first_without_noise, of="kalman_error"),
            Mutant(KalmanFilter, "_updated", lambda right, kalman, P, gain: right(kalman, P, 1.01 * gain)),
            Mutant(KalmanFilter, "_predicted", lambda right, kalman, P: kalman.A_RBDD @ P @ kalman.A_RBDD.mT),
            Mutant(PcgLayer, "gamma", lambda right, layer: right(layer) @ layer.H_BDD),
            window=2,
            samples=2000,
        ),
    ),
    Theorem41: Case(
        # a mutant of the science is seen
        Mutants(
            Mutant(theory, "_half_paired", lambda right, *given: right(*given) * 0.5),
            Mutant(theory, "_gram_mean_and_covariance", half_of_the_covariance),
            Mutant(task, "_tokens", lambda right, *of: (right(*of)[0][:, :, 1:], right(*of)[1])),
            Mutant(task.DynamicalSystemLaw, "observations", noise_twice),
            Mutant((evidence, population), "covariances_of_systems", noise_twice_in_theory),
            Mutant(theory, "covariance_of_modes", from_y_0, settings=FROM_Y_0),
            Mutant(eq14, "constant", lambda right, part: 1.001 * right(part)),
            Mutant(theory, "legendre_rule", lambda right, count: right((count - 1) // 3), of="means_error"),
            Mutant(theory, "share_rule", lambda right, dim: right(dim + 1), settings={"setting": "b"}),
            **SMALL,
        ),
    ),
    Toeplitz: Case(
        Holds(
            *({"setting": setting} for setting in "abcd"),
            window=2,
            length=15,
            dim=2,
            also=toeplitz_holds,
        ),
        # it fails for growing sequences
        Mutants(
            Mutant(theory, "covariance_of_modes", lambda right, v, p, s, T: right(1.3 * v, p, s, T)),
            window=1,
            length=12,
            dim=1,
        ),
    ),
}


test_a_check_holds = settings_test(CASES)
test_a_mutant_is_seen = mutants_test(CASES)
