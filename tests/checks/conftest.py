from __future__ import annotations

import pytest


@pytest.fixture
def mutate(monkeypatch):
    """Puts in the place of a function what `wrong` makes of the right one."""

    def put(where, name, wrong):
        monkeypatch.setattr(where, name, wrong(getattr(where, name)))

    return put
