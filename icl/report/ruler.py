"""A small axis with the measurement, its bound and the control: logarithmic if no number is negative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from icl.text import typeset

WIDTH, HEIGHT, LEFT, RIGHT, AXIS = 300, 46, 34, 26, 24


@dataclass(frozen=True)
class Marks:
    """`wanted` is the side of the bound on which the statement puts what was measured."""

    measured: float
    bound: float
    wanted: str  # < | >
    control: float | None = None  # of the same quantity, and rejected

    @property
    def values(self) -> list[float]:
        return [v for v in (self.measured, self.bound, self.control) if v is not None]


def svg(marks: Marks, verdict: str) -> str:
    """One <svg>; its colours are the page's, by class."""
    place, ticks = _scale(marks.values)
    labels = [f"measured {typeset(marks.measured)}", f"bound {marks.wanted} {typeset(marks.bound)}"]
    if marks.control is not None:
        labels.append(f"control {typeset(marks.control)}")
    look = {"class": "ruler", "role": "img", "aria-label": ", ".join(labels)}
    root = ElementTree.Element("svg", look | {"viewBox": f"0 0 {WIDTH} {HEIGHT}"})

    def add(tag: str, look: str, text: str | None = None, **attributes: object) -> None:
        named = {
            k.replace("_", "-"): f"{v:.1f}" if isinstance(v, float) else str(v) for k, v in attributes.items()
        }
        ElementTree.SubElement(root, tag, {"class": look, **named}).text = text

    edge = place(marks.bound)
    start, end = (LEFT - 12.0, edge) if marks.wanted == "<" else (edge, WIDTH - RIGHT + 12.0)
    add("rect", "side", x=start, y=AXIS - 8, width=max(end - start, 0.0), height=16)
    add("line", "axis", x1=LEFT - 12, x2=WIDTH - RIGHT + 12, y1=AXIS, y2=AXIS)
    for value, text in ticks:
        add("line", "axis", x1=place(value), x2=place(value), y1=AXIS - 3, y2=AXIS + 3)
        add("text", "tick", text, x=place(value), y=HEIGHT - 4, text_anchor="middle")
    add("line", "bound", x1=edge, x2=edge, y1=AXIS - 12, y2=AXIS + 8)
    add("text", "tick", "bound", x=edge, y=9, text_anchor="middle")
    if marks.control is not None:
        x = place(marks.control)
        add("path", "control", d=f"M{x - 4:.1f} {AXIS - 4}l8 8m0 -8l-8 8")
        if abs(x - edge) > 44:
            add("text", "tick", "control", x=x, y=9, text_anchor="middle")
    add("circle", f"dot v-{verdict}", cx=place(marks.measured), cy=AXIS, r=4.5)
    return ElementTree.tostring(root, encoding="unicode")


def _scale(values: Sequence[float]) -> tuple[Callable[[float], float], list[tuple[float, str]]]:
    """Return the position of a value, and the axis's labels. On a logarithmic axis 0 lies at the left end."""
    if min(values) < 0:
        low, high = min(values), max(*values, 0.0)
        ends = [(low, typeset(low, 2)), (high, typeset(high, 2))]
        return lambda v: LEFT + (v - low) / (high - low) * (WIDTH - LEFT - RIGHT), ends
    powers = [math.log10(v) for v in values if v > 0] or [0.0]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    high = max(high, low + 1)
    with_zero = min(values) == 0
    start = LEFT + (32 if with_zero else 0)

    def place(value: float) -> float:
        if value <= 0:
            return float(LEFT)
        return start + (math.log10(value) - low) / (high - low) * (WIDTH - RIGHT - start)

    ends = [(10.0**low, _power(low)), (10.0**high, _power(high))]
    return place, [(0.0, "0")] * with_zero + ends


def _power(exponent: int) -> str:
    return typeset(10.0**exponent) if -3 <= exponent <= 4 else f"10{_superscript(exponent)}"


def _superscript(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
