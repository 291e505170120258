"""The figure of a sweep and the rows it draws: a metric by the first key, mean over seeds and interval, and
the exact optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from icl.figures import style
from icl.figures.files import render

COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.SKY)

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


def png_of_sweep(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw rows of one metric; those that differ in further keys in colours, of which the legend has few."""

    def draw() -> Figure:
        figure = Figure(figsize=(4.5, 3.0), dpi=160, layout="constrained")
        axes = figure.subplots()
        for number, rest in enumerate(dict.fromkeys(row["rest"] for row in rows)):
            series = sorted((row for row in rows if row["rest"] == rest), key=lambda row: row["x"])
            colour, x = COLORS[number % len(COLORS)], [row["x"] for row in series]
            mean = [row["mean"] for row in series]
            ends = [
                [row["mean"] - row["low"] if row["low"] is not None else 0 for row in series],
                [row["high"] - row["mean"] if row["high"] is not None else 0 for row in series],
            ]
            label = rest if number < len(COLORS) else None
            axes.errorbar(x, mean, ends, fmt="o", color=colour, label=label or None)
            if any(row["theory"] is not None for row in series):
                exact = [float("nan") if row["theory"] is None else row["theory"] for row in series]
                style.exact_curve(axes, x, exact, "exact optimum" if not number else "")
        values = sorted({row["x"] for row in rows})
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yscale("log")
        axes.set_xlabel(rows[0]["key"])
        axes.set_ylabel(f"{rows[0]['metric'].replace('_', ' ')}, mean over seeds")
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
        return figure

    return render(draw, ["png"])["png"]


def _pair(override: str) -> tuple[str, str]:
    key, _, value = override.lstrip("+").partition("=")
    return key, value.strip("'\"")


def _positive(value: str) -> float | None:
    try:
        return number if (number := float(value)) > 0 else None
    except ValueError:
        return None
