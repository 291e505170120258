"""Lemma B.9 and Corollary E.2."""

from __future__ import annotations

import numpy as np
import pytest

from icl.checks.giannou import corollaryE_2, lemmaB_9
from icl.checks.giannou.corollaryE_2 import CorollaryE2
from icl.checks.giannou.lemmaB_9 import LemmaB9
from icl.errors import InputError


@pytest.mark.parametrize(
    "mu, verdict", [(0.1, "holds"), (1.4, "holds"), (1.43, "fails"), (2, "fails"), (30, "fails")]
)
def test_lemma_b9_is_true_below_the_root_of_two(mu, verdict):
    finding = LemmaB9(mu=mu, samples=8).measure()
    assert finding.verdict == verdict and finding.control.rejected
    assert finding.measured["growth_far_out"] == pytest.approx(mu**2 - 2, abs=1e-3)


def test_a_step_that_stays_put_fails(monkeypatch):
    monkeypatch.setattr(lemmaB_9.LogisticLoss, "damped_step", lambda self, x_BD: x_BD)
    assert LemmaB9(mu=0.1).measure().verdict == "fails"


@pytest.mark.parametrize("mu", [1e-3, 0.1, 5.0])
def test_corollary_e2(mu):
    finding = CorollaryE2(mu=mu, samples=200).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert finding.measured["inverse"] > 0.9  # E.2 is sharp


def test_a_tighter_bound_fails(monkeypatch):
    right = corollaryE_2.inverse_share
    monkeypatch.setattr(corollaryE_2, "inverse_share", lambda H, E, mu: 1.2 * right(H, E, mu))
    assert CorollaryE2(samples=200).measure().verdict == "fails"


def test_refuses():
    for check in (LemmaB9, CorollaryE2):
        with pytest.raises(InputError, match=r"check\.mu"):
            check(mu=-1.0)
        with pytest.raises(InputError, match=r"check\.samples"):
            check(samples=0)
    assert np.isfinite(CorollaryE2(samples=1, dim=1, context=1).measure().measured["inverse"])
