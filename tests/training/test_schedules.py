import math

import pytest

from icl.errors import InputError
from icl.training.schedules import Constant, StepHalving, WarmupCosine


def test_constant() -> None:
    assert {Constant().rate(0.3, step) for step in (0, 1, 10**6)} == {0.3}


def test_step_halving() -> None:
    schedule = StepHalving(every=3)
    assert [schedule.rate(0.8, s) for s in range(8)] == [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2]


def test_warmup_cosine() -> None:
    schedule = WarmupCosine(warmup=4, decay=10, min_lr=0.1)
    assert [schedule.rate(1.0, s) for s in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert schedule.rate(1.0, 4) == 1.0
    for s in range(11):
        assert schedule.rate(1.0, 4 + s) == pytest.approx(
            0.1 + 0.9 * math.cos(math.pi * s / 20) ** 2, rel=1e-14
        )
    assert schedule.rate(1.0, 14) == schedule.rate(1.0, 10**6) == pytest.approx(0.1)
    assert WarmupCosine(warmup=0, decay=10).rate(1.0, 0) == 1.0


def test_warmup_cosine_again() -> None:
    once, again = WarmupCosine(2, 4), WarmupCosine(2, 4, every=6, factors=[1.0, 0.5])
    for s in range(6):
        assert again.rate(0.4, s) == once.rate(0.4, s)
        assert again.rate(0.4, 6 + s) == again.rate(0.4, 600 + s) == once.rate(0.2, s)
    assert WarmupCosine(2, 4, every=6).rate(0.4, 7) == once.rate(0.4, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepHalving(0), r"schedule\.every=0: must be an integer of at least 1"),
        (lambda: WarmupCosine(warmup=-1), r"schedule\.warmup=-1"),
        (lambda: WarmupCosine(decay=0), r"schedule\.decay=0"),
        (lambda: WarmupCosine(every=0), r"schedule\.every=0"),
        (lambda: WarmupCosine(factors=[1.0]), r"schedule\.factors=\[1\.0\]: needs schedule\.every"),
        (lambda: WarmupCosine(every=6, factors=[1.0, 0.0]), r"schedule\.factors"),
        (lambda: WarmupCosine(every=6, factors=2.0), r"schedule\.factors=2\.0"),
        (lambda: WarmupCosine(min_lr=-1.0), r"schedule\.min_lr=-1\.0"),
        (
            lambda: WarmupCosine(min_lr=0.5).rate(0.1, 0),
            r"schedule\.min_lr=0\.5: must be at most optimizer\.lr=0\.1",
        ),
    ],
)
def test_impossible_numbers(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        make()
