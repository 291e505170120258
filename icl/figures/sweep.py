"""The rows that a chart of a sweep draws: a metric by the first key, mean over seeds and interval, and the
exact optimum."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def rows_of(
    summary: Sequence[Row], short: Mapping[str, str], levels: Mapping[tuple[str, ...], float]
) -> list[Row]:
    """Return a row for each configuration and metric; `levels` has the exact optimum by overrides. `x` is the
    value of the first key where all are positive, else the configuration's number; `rest` has the other
    keys."""
    settings = list(dict.fromkeys(tuple(row["overrides"]) for row in summary))
    values = [[_pair(override) for override in setting] for setting in settings]
    numbers = [_positive(pairs[0][1]) if pairs else None for pairs in values]
    by_value = all(numbers) and len({pairs[0][0] for pairs in values}) == 1
    about: dict[tuple[str, ...], Row] = {}
    for number, (setting, pairs) in enumerate(zip(settings, values, strict=True), 1):
        texts = [f"{short.get(key, key)}={value}" for key, value in pairs]
        about[setting] = {
            "setting": " ".join(texts) or "all",
            "key": short.get(pairs[0][0], pairs[0][0]) if by_value else "setting",
            "x": numbers[number - 1] if by_value else number,
            "rest": " ".join(texts[1:]) if by_value else "",
        }
    return [
        {
            **about[setting := tuple(row["overrides"])],
            **{name: row[name] for name in ("metric", "mean", "low", "high", "count")},
            "theory": levels.get(setting) if row["metric"] == "exact_risk" else None,
        }
        for row in summary
    ]


def _pair(override: str) -> tuple[str, str]:
    key, _, value = override.lstrip("+").partition("=")
    return key, value.strip("'\"")


def _positive(value: str) -> float | None:
    try:
        return number if (number := float(value)) > 0 else None
    except ValueError:
        return None
