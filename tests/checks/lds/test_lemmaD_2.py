from __future__ import annotations

import numpy as np
import pytest
import torch

from icl.checks.lds import lemmaD_2
from icl.checks.lds.lemmaD_2 import LemmaD2
from icl.tasks import dynamical_system as task
from icl.theory import dynamical_system as theory
from tests.checks.asking import held

SETTINGS = ("a", "b", "c", "d")


@pytest.mark.parametrize("setting", SETTINGS)
def test_lemma_d_2_holds(setting):
    finding = held(LemmaD2(setting=setting, length=8, dim=3, samples=2000))
    assert ("mean_error" in finding.measured) == (setting in "ab")


def test_lemma_d_2_noise_added_twice(mutate):
    def twice(right):
        return lambda *given: (
            (y := right(*given)) + 0.1 * torch.from_numpy(np.random.default_rng(0).standard_normal(y.shape))
        )

    mutate(task.DynamicalSystemLaw, "observations", twice)
    assert LemmaD2(length=6, dim=2, samples=2000).measure().verdict == "fails"


def test_lemma_d_2_a_wrong_recursion_or_mean(monkeypatch):
    honest = theory.covariances_of_systems
    wrong = lambda A, c, w, noise, start, T: honest(A, c, w, noise, 1.001 * start, T)  # noqa: E731
    monkeypatch.setattr(lemmaD_2, "covariances_of_systems", wrong)
    finding = LemmaD2(length=6, dim=2, samples=500).measure()
    assert finding.verdict == "fails" and finding.bound.of == "recursion_error"
    monkeypatch.undo()
    modes = theory.covariance_of_modes
    monkeypatch.setattr(theory, "covariance_of_modes", lambda v, p, s, T: modes(v, 1.0001 * p, s, T))
    finding = LemmaD2(length=6, dim=2, samples=500).measure()
    assert finding.verdict == "fails" and finding.bound.of == "mean_error"
