"""A check's settings: fields declared with their range, limits on memory and time, the law of the prompts.

    dim: int = integer(5, 1, 50, "the fourth moments take (dim + 1)^4 numbers")

`validate` compares every declared field with its range; rules between several settings stay in the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from itertools import pairwise
from typing import Any, NamedTuple

from icl.errors import InputError, whole
from icl.tasks import LinearRegression, LinearRegressionLaw

HELD = 2**27  # numbers of one array: a gigabyte, of which a check holds a few
MOST_STARTS, MOST_DRAWN = 10**5, 10**9  # days
RANGE = "range"  # of a field's metadata


class Range(NamedTuple):
    """The integers from `low` to `high`, where given; `beyond` says what goes wrong above."""

    low: int
    high: int | None = None
    beyond: str = ""


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
    for name, (low, high, beyond) in ranges(settings).items():
        key, value = f"{prefix}.{name}", getattr(settings, name)
        if beyond and high is not None:
            in_range(key, value, low, high, beyond)
        else:
            whole(key, value, low, high)


def in_range(key: str, value: Any, low: int, high: int, reason: str) -> int:
    """`value` as an int from `low` to `high`; `reason` says what goes wrong beyond."""
    if whole(key, value, low) > high:
        raise InputError(f"{key}={value}: must be from {low} to {high}; beyond, {reason}")
    return int(value)


def fits_in_memory(samples: Any, low: int, each: int) -> int:
    """`check.samples`, where each takes so many numbers of an array that is held as a whole."""
    return in_range("check.samples", samples, low, max(low, HELD // each), "they fill the memory")


def rising_contexts(contexts: Any, most: int, beyond: str) -> list[int]:
    """`check.contexts`, at least two context lengths in rising order."""
    if isinstance(contexts, str) or not isinstance(contexts, Sequence) or len(contexts) < 2:
        raise InputError(f"check.contexts={contexts}: must be a list of at least 2 context lengths")
    lengths = [in_range("check.contexts", N, 1, most, beyond) for N in contexts]
    if any(later <= N for N, later in pairwise(lengths)):
        raise InputError(f"check.contexts={lengths}: must be in rising order")
    return lengths


def law_of(dim: int, context: int, seed: int, **covariances: Any) -> LinearRegressionLaw:
    """Return the task's law at one seed, every setting named as the check's own."""
    whole("check.dim", dim, 1)
    whole("check.context", context, 1)
    task = LinearRegression(dim, context, prefix="check", **covariances)
    return task.law([whole("check.seed", seed, 0)])
