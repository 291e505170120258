"""Two pieces of work timed in turn, so that a drifting machine slows both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SpeedComparison:
    """Medians of two pieces of work, the ratio slow / fast pair by pair, and what the ratio must reach.

    CPU time is that of all threads: what the work costs where others share the cores.
    """

    name: str
    first: str
    second: str
    first_ms: float
    second_ms: float
    first_cpu_ms: float
    second_cpu_ms: float
    ratio: float
    target: str
    met: bool


def compare(
    name: str,
    first: tuple[str, Callable[[], object]],
    second: tuple[str, Callable[[], object]],
    repeats: int,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    by: str = "wall",
) -> SpeedComparison:
    """Time A B A B ... after a warm-up each; the ratio A / B is the median over pairs, `by` wall or cpu."""
    first[1](), second[1]()
    wall_A, cpu_A, wall_B, cpu_B = zip(
        *(_seconds(first[1]) + _seconds(second[1]) for _ in range(repeats)), strict=True
    )
    pairs = zip(wall_A, wall_B, strict=True) if by == "wall" else zip(cpu_A, cpu_B, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    met = (at_least is None or ratio >= at_least) and (at_most is None or ratio <= at_most)
    limits = (("at least", at_least), ("at most", at_most))
    target = ", ".join(f"{words} {limit:g}" for words, limit in limits if limit is not None)
    a_ms, b_ms, a_cpu_ms, b_cpu_ms = (
        statistics.median(column) * 1e3 for column in (wall_A, wall_B, cpu_A, cpu_B)
    )
    return SpeedComparison(name, first[0], second[0], a_ms, b_ms, a_cpu_ms, b_cpu_ms, ratio, target, met)


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
