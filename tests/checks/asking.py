"""A check is asked and holds, its control rejected; what it measured is looked at further by whoever asks."""

from __future__ import annotations

from typing import Any


def held(check: Any, margin: float = 0.0) -> Any:
    """`margin`: how far beyond the bound its control is, where both are of one quantity."""
    finding = check.measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert not margin or finding.control.measured > margin * finding.bound.value
    return finding
