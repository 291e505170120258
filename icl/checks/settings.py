"""A check's settings: fields declared with their range (icl.ranges), limits on memory, the law of prompts.

Rules between several settings stay in the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from icl.errors import InputError, whole
from icl.ranges import in_range, integer, ranges, sample_count, search_starts, validate
from icl.tasks import LinearRegression, LinearRegressionLaw

__all__ = [
    "HELD", "fits_in_memory", "in_range", "integer", "law_of", "ranges", "rising_contexts", "sample_count",
    "search_starts", "validate",
]  # fmt: skip

HELD = 2**27  # numbers of one array: a gigabyte, of which a check holds a few


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
