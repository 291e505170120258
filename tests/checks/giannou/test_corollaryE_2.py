from __future__ import annotations

import numpy as np
import pytest

from icl.checks.giannou import corollaryE_2
from icl.checks.giannou.corollaryE_2 import CorollaryE2
from tests.checks.asking import held


@pytest.mark.parametrize("mu", [1e-3, 0.1, 5.0])
def test_corollary_e2(mu):
    finding = held(CorollaryE2(mu=mu, samples=200))
    assert finding.measured["inverse"] > 0.9  # E.2 is sharp


def test_a_tighter_bound_fails(monkeypatch):
    right = corollaryE_2.inverse_share
    monkeypatch.setattr(corollaryE_2, "inverse_share", lambda H, E, mu: 1.2 * right(H, E, mu))
    assert CorollaryE2(samples=200).measure().verdict == "fails"


def test_the_least_size():
    assert np.isfinite(CorollaryE2(samples=1, dim=1, context=1).measure().measured["inverse"])
