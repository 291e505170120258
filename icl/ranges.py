"""Integer settings declared with their range, as fields of a dataclass.

    dim: int = integer(5, 1, 50, "the fourth moments take (dim + 1)^4 numbers")

`validate` compares every declared field with its range.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, NamedTuple

from icl.errors import InputError, whole

MOST_STARTS, MOST_DRAWN = 10**5, 10**9  # days
MOST_PROMPTS = 10**7  # at once, in memory
RANGE = "range"  # of a field's metadata


class Range(NamedTuple):
    """The integers from `low` to `high`, where given; `beyond` says what goes wrong above."""

    low: int
    high: int | None = None
    beyond: str = ""

    def validate(self, key: str, value: Any) -> int:
        """Return `value` if it is in the range, else refuse it by name."""
        if self.beyond and self.high is not None:
            return in_range(key, value, self.low, self.high, self.beyond)
        return whole(key, value, self.low, self.high)


def integer(default: int, low: int, high: int | None = None, beyond: str = "") -> Any:
    """Declare a dataclass field that takes integers of this range."""
    return field(default=default, metadata={RANGE: Range(low, high, beyond)})


def sample_count(default: int, low: int) -> Any:
    """Declare how many samples are drawn and forgotten in parts."""
    return integer(default, low, MOST_DRAWN, "drawing them takes days")


def search_starts(default: int, low: int = 1) -> Any:
    """Declare how often a search begins."""
    return integer(default, low, MOST_STARTS, "the search takes days")


def ranges(settings: Any) -> dict[str, Range]:
    """Return the declared ranges of a dataclass or one of its instances, by field."""
    return {f.name: f.metadata[RANGE] for f in fields(settings) if RANGE in f.metadata}


def validate(settings: Any, prefix: str = "check") -> None:
    """Refuse a value outside its field's declared range, named PREFIX.FIELD."""
    for name, declared in ranges(settings).items():
        declared.validate(f"{prefix}.{name}", getattr(settings, name))


def in_range(key: str, value: Any, low: int, high: int, reason: str) -> int:
    """`value` as an int from `low` to `high`; `reason` says what goes wrong beyond."""
    if whole(key, value, low) > high:
        raise InputError(f"{key}={value}: must be from {low} to {high}; beyond, {reason}")
    return int(value)
