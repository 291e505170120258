import numpy as np
import torch

from icl.checks.lds import lemmaD_2
from icl.checks.lds.lemmaD_2 import LemmaD2
from icl.tasks import dynamical_system as task
from icl.theory import dynamical_system as theory
from tests.checks.asking import Mutant, holds, seen


@holds(LemmaD2, *({"setting": setting} for setting in "abcd"), length=8, dim=3, samples=2000)
def test_lemma_d_2_holds(check, finding):
    assert ("mean_error" in finding.measured) == (check.law.setting in "ab")


@holds(
    LemmaD2,
    {"setting": "b", "process_noise": 0, "observation_noise": 0},
    {"observation_noise": 1e6},
    {"initial_variance": 1e6, "setting": "c"},
    {"process_noise": 0, "observation_noise": 0, "dim": 1, "length": 60},
    {"process_noise": 1e-12, "observation_noise": 1e12, "initial_variance": 1e-30},
    samples=500,
    length=20,
    dim=2,
)
def test_lemma_d_2_holds_whichever_noise_is_the_largest(check, finding):
    """The control is (26) with a quarter of that noise's term."""
    levels = {"Sigma_w": "process_noise", "sigma_v^2": "observation_noise", "Sigma_0": "initial_variance"}
    largest = max(levels, key=lambda term: getattr(check, levels[term]))
    assert largest in finding.control.description


def noise_twice(right, *given):
    y = right(*given)
    return y + 0.1 * torch.from_numpy(np.random.default_rng(0).standard_normal(y.shape))


def longer_start(right, A, c, w, noise, start, T):
    return right(A, c, w, noise, 1.001 * start, T)


test_lemma_d_2_sees_noise_added_twice_and_a_wrong_recursion_or_mean = seen(
    LemmaD2,
    Mutant(task.DynamicalSystemLaw, "observations", noise_twice, settings={"samples": 2000}),
    Mutant(theory, "legendre_rule", lambda right, count: right(4), of="mean_error"),
    Mutant(lemmaD_2, "covariances_of_systems", longer_start, of="recursion_error"),
    Mutant(
        theory, "covariance_of_modes", lambda right, v, p, s, T: right(v, 1.0001 * p, s, T), of="mean_error"
    ),
    length=6,
    dim=2,
    samples=500,
)
