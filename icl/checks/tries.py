"""A statement at random settings from its ranges, smallest first; one that fails is lowered while it
fails."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from icl.checks.statement import OPEN, Range, Statement, accepts, ranges
from icl.errors import InputError

Settings = dict[str, Any]


def decided(statement: Statement, tries: int | None, seed: int, typed: str) -> dict[str, Any]:
    """Decide a statement at its settings and at random ones, as many as it takes where `tries` is None.
    `typed` is what stands behind `icl check` for it."""
    found = statement.decide().document()
    others = tried(statement, statement.tries if tries is None else tries, seed)
    expected, verdict = statement.expected(), found["verdict"]
    if expected == OPEN:
        found["notes"].insert(0, "which verdict is true at these settings is not known beforehand")
    expected = verdict if accepts(expected, verdict) else expected.partition(" or ")[0]
    counterexample = others["smallest_counterexample"]
    if counterexample is not None:
        found["verdict"], expected = "fails", "holds"
        alone = command(typed, counterexample)
        found["notes"].insert(0, f"fails at other settings: {alone}")
    return found | {"expected": expected, "tries": others}


def random_settings(statement: Statement, tries: int, seed: int) -> Iterator[Statement]:
    """Yield the statement at random settings: at the least ones first, at the end up to the largest."""
    rng = Random(seed)
    for k in range(tries):
        for _ in range(50):  # settings may exclude each other
            drawn: Settings = {}
            for name, declared in ranges(statement).items():
                drawn[name] = _draw(rng, k / max(1, tries - 1), declared, getattr(statement, name), drawn)
            try:
                yield replace(statement, **drawn)  # type: ignore[type-var]
                break
            except InputError:
                continue


def _draw(rng: Random, share: float, declared: Range, asked: Any, drawn: Mapping[str, Any]) -> Any:
    low, high = declared.low, declared.high
    if declared.draw is not None:
        return declared.draw(rng, share, drawn)
    if declared.choices:
        return rng.choice(declared.choices)
    if high is None:
        return asked
    wide = low > 0 and high > 100 * low  # then by powers
    top = low * (high / low) ** share if wide else low + share * (high - low)
    if isinstance(low, int) and isinstance(high, int):
        top = max(low, round(top))
        if not wide:
            return rng.randint(low, top)
        return min(top, round(math.exp(rng.uniform(math.log(low), math.log(top + 1)))))
    value = math.exp(rng.uniform(math.log(low), math.log(top))) if wide else rng.uniform(low, top)
    return float(f"{value:.3g}")


def tried(statement: Statement, tries: int, seed: int) -> dict[str, Any]:
    """Decide the statement at random settings; return how often it holds, and the smallest counterexample to
    what is expected to hold."""
    verdicts: Counter[str] = Counter()
    first: dict[str, Statement] = {}  # of each verdict, where another is expected
    for one in random_settings(statement, tries, seed):
        verdict = one.decide().verdict
        verdicts[verdict] += 1
        if not accepts(one.expected(), verdict):
            first.setdefault(verdict, one)
    fails, left = first.get("fails"), first.get("undecided")
    return {
        "decided": sum(verdicts.values()),
        **{verdict: verdicts[verdict] for verdict in ("holds", "fails", "undecided")},
        "smallest_counterexample": fails and settings_of(lowered(fails)),
        "undecided_at": left and settings_of(left),
    }


def lowered(one: Statement) -> Statement:
    """Lower each setting, by halves, while the statement still fails where it is expected to hold."""
    for name, declared in ranges(one).items():
        if declared.draw is not None:
            one = _if_it_fails(one, name, None) or one
        elif isinstance(declared.low, int):
            low, high = declared.low, getattr(one, name)
            while low < high:
                middle = (low + high) // 2
                lower = _if_it_fails(one, name, middle)
                one, low, high = (one, middle + 1, high) if lower is None else (lower, low, middle)
    return one


def _if_it_fails(one: Statement, name: str, value: Any) -> Statement | None:
    try:
        lower: Statement = replace(one, **{name: value})  # type: ignore[type-var]
    except InputError:
        return None
    return None if accepts(lower.expected(), "fails") or lower.decide().verdict != "fails" else lower


def settings_of(statement: Statement) -> Settings:
    """Return the settings that tries are drawn from."""
    return {name: getattr(statement, name) for name in ranges(statement)}


def command(typed: str, settings: Mapping[str, Any]) -> str:
    """Return the command that decides a statement, an id or a file, at these settings alone."""
    given = (f"'check.{key}={value}'" if isinstance(value, list | tuple) else f"check.{key}={value}"
             for key, value in settings.items() if value is not None)  # fmt: skip
    return " ".join([f"icl check {typed}", *given, "tries=0"])
