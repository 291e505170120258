"""A number is a rational, a ball or a sample: its sign, how far from 0 it is, how it is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from flint import arb, fmpq, fmpz

QUANTILE = 3.2905  # standard errors of a sample's interval: 99.9 %
LONGEST = 400  # letters of a rational that a document writes out


@dataclass(frozen=True)
class Sample:
    """The mean of random draws and its standard error."""

    mean: float
    stderr: float

    @classmethod
    def of(cls, values: Any) -> Sample:
        """Return that of an array of independent draws."""
        return cls(float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5)

    @classmethod
    def share(cls, reach: Sequence[bool]) -> Sample:
        """Return a share, its standard error that of one more of either kind, so that none is 0."""
        count, one_more = len(reach), (sum(reach) + 1) / (len(reach) + 2)
        return cls(sum(reach) / count, (one_more * (1 - one_more) / count) ** 0.5)

    @classmethod
    def median(cls, values: Any) -> Sample:
        """Return their median, with the wider side of its interval of 99.9 % by order statistics."""
        from icl.stats import fair_coin

        ordered, k = sorted(values.tolist()), fair_coin(0.0005, len(values))
        middle = median(ordered)
        return cls(middle, max(middle - ordered[k], ordered[-1 - k] - middle) / QUANTILE)


def sign(value: Any) -> int | None:
    """Return -1, 0 or 1 where it is certain."""
    if isinstance(value, Sample):
        return (value.mean > 0) - (value.mean < 0) if abs(value.mean) > QUANTILE * value.stderr else None
    if isinstance(value, arb):
        return 1 if value > 0 else -1 if value < 0 else 0 if value == 0 else None
    if isinstance(value, int | fmpz | fmpq) and not isinstance(value, bool):
        return int(value > 0) - int(value < 0)
    name = type(value).__name__
    raise TypeError(f"{name}: not a rational, a ball or a sample; rational(x) makes one of a float")


def farthest(value: Any) -> fmpq | None:
    """Return how far from zero a number may be, None where that is not known."""
    if isinstance(value, Sample):
        most = abs(value.mean) + QUANTILE * value.stderr
        return fmpq(*most.as_integer_ratio()) if most < math.inf else None
    if isinstance(value, arb):
        return value.abs_upper().fmpq() if value.is_finite() else None
    return abs(fmpq(value))


def nearest(value: Any) -> fmpq:
    """Return how near to zero a number may be."""
    if isinstance(value, Sample):
        least = abs(value.mean) - QUANTILE * value.stderr
        return fmpq(*least.as_integer_ratio()) if 0 < least < math.inf else fmpq(0)
    if isinstance(value, arb):
        return value.abs_lower().fmpq() if value.is_finite() else fmpq(0)
    return abs(fmpq(value))


def minus(value: Any, limit: Any) -> Any:
    if isinstance(value, Sample):
        return Sample(value.mean - as_float(limit), value.stderr)  # type: ignore[operator]
    return value - limit


def kind_of(value: Any) -> str:
    sign(value)  # refuses what is no number
    return "sampled" if isinstance(value, Sample) else "ball" if isinstance(value, arb) else "exact"


def entries_of(value: Any) -> Iterator[Any]:
    """Yield the numbers of a list or table, however deep."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from entries_of(entry)
    else:
        yield value


def some_of(name: str, value: Any) -> list[Any]:
    entries = list(entries_of(value))
    if not entries:
        raise ValueError(f"{name}: nothing was measured")
    return entries


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): each(entry, change) for key, entry in value.items()}
    return [each(entry, change) for entry in value] if isinstance(value, list | tuple) else change(value)


def as_float(value: Any) -> float | int | None:
    """Return the nearest float; whole numbers and truths as they are."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Sample):
        return value.mean
    if isinstance(value, arb):
        return float(value.mid())
    try:
        return int(fmpq(value).p) / int(fmpq(value).q)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def written(value: Any) -> Any:
    """Return rationals as "p/q"; None where one is none, or is too long to be read."""
    entries = list(entries_of(value))
    if not entries or not all(
        isinstance(entry, int | fmpz | fmpq) and not isinstance(entry, bool) for entry in entries
    ):
        return None
    return each(value, str) if sum(len(str(entry)) for entry in entries) <= LONGEST else None


def text(value: Any) -> str:
    """Return a number in a few letters, with its error."""
    if isinstance(value, Sample):
        return f"{value.mean:.4g} ± {value.stderr:.2g}"
    if isinstance(value, arb):
        return str(value.str(6, radius=True)).strip("[]").replace("+/-", "±")
    if isinstance(value, Mapping | list | tuple):
        return f"[{', '.join(map(text, entries_of(value)))}]"
    letters = str(value)
    return letters if len(letters) <= 24 or value is None else f"{as_float(value):.9g}"


def radii(value: Any) -> list[arb]:
    return [entry.rad() for entry in entries_of(value) if isinstance(entry, arb)]
