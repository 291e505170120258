"""Settings that a check refuses in one line which begins with their name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from icl.errors import InputError


def insist(check: Callable[..., object], cases: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Of each case the setting to be named, and all that are given."""
    for key, settings in cases:
        with pytest.raises(InputError, match=rf"^check\.{key}") as refusal:
            check(**settings)
        assert "\n" not in str(refusal.value)
