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


def noise_twice(right, *given):
    y = right(*given)
    return y + 0.1 * torch.from_numpy(np.random.default_rng(0).standard_normal(y.shape))


def longer_start(right, A, c, w, noise, start, T):
    return right(A, c, w, noise, 1.001 * start, T)


test_lemma_d_2_sees_noise_added_twice_and_a_wrong_recursion_or_mean = seen(
    LemmaD2,
    Mutant(task.DynamicalSystemLaw, "observations", noise_twice, settings={"samples": 2000}),
    Mutant(lemmaD_2, "covariances_of_systems", longer_start, of="recursion_error"),
    Mutant(
        theory, "covariance_of_modes", lambda right, v, p, s, T: right(v, 1.0001 * p, s, T), of="mean_error"
    ),
    length=6,
    dim=2,
    samples=500,
)
