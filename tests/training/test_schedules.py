import math
from collections.abc import Callable
from typing import Any

import pytest

from icl.errors import InputError
from icl.training.schedules import Constant, StepHalving, WarmupCosine

COSINE = [0.1 + 0.9 * math.cos(math.pi * s / 20) ** 2 for s in range(10)]
RATES: list[tuple[Any, float, list[float]]] = [
    (Constant(), 0.3, [0.3, 0.3]),
    (StepHalving(every=3), 0.8, [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2]),
    (WarmupCosine(warmup=4, decay=10, min_lr=0.1), 1.0, [0.25, 0.5, 0.75, 1.0, *COSINE, 0.1, 0.1]),
    (WarmupCosine(warmup=0, decay=2), 1.0, [1.0, 0.5, 0.0, 0.0]),
    (WarmupCosine(1, 2, every=3), 0.4, [0.4, 0.4, 0.2, 0.4, 0.4, 0.2]),
    (WarmupCosine(1, 2, every=3, factors=[1.0, 0.5]), 0.4, [0.4, 0.4, 0.2, *[0.2, 0.2, 0.1] * 2]),
]
IMPOSSIBLE: list[tuple[Callable[[], Any], str]] = [
    (lambda: StepHalving(0), r"schedule\.every=0: must be an integer of at least 1"),
    (lambda: WarmupCosine(warmup=-1), r"schedule\.warmup=-1"),
    (lambda: WarmupCosine(decay=0), r"schedule\.decay=0"),
    (lambda: WarmupCosine(every=0), r"schedule\.every=0"),
    (lambda: WarmupCosine(factors=[1.0]), r"schedule\.factors=\[1\.0\]: needs schedule\.every"),
    (lambda: WarmupCosine(every=6, factors=[1.0, 0.0]), r"schedule\.factors"),
    (lambda: WarmupCosine(every=6, factors=2.0), r"schedule\.factors=2\.0"),  # type: ignore[arg-type]
    (lambda: WarmupCosine(min_lr=-1.0), r"schedule\.min_lr=-1\.0"),
    (
        lambda: WarmupCosine(min_lr=0.5).rate(0.1, 0),
        r"schedule\.min_lr=0\.5: must be at most optimizer\.lr=0",
    ),
]


@pytest.mark.parametrize(("schedule", "base", "expected"), RATES)
def test_rates(schedule: Any, base: float, expected: list[float]) -> None:
    assert [schedule.rate(base, s) for s in range(len(expected))] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("make", "message"), IMPOSSIBLE)
def test_impossible_numbers(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
