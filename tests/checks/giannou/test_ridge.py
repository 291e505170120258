from __future__ import annotations

import pytest

from icl.checks.giannou.ridge import Ridge
from icl.errors import InputError


def test_it_ends_at_ridge():
    ridge = Ridge(steps=30, mu=0.5).measure()
    assert ridge.verdict == "holds" and ridge.control.rejected
    assert ridge.measured["distance_to_least_squares"] < 1e-12


def test_ridge_refuses_no_ridge():
    for mu in (0, -1):
        with pytest.raises(InputError, match=r"check\.mu"):
            Ridge(mu=mu)
