"""Measured values as short text: numbers at a glance, lists and tables cut where they are long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 8  # entries of a list or table before it is cut
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 4) -> str:
    """0.1336, 2.11 × 10⁻¹⁶, 41; a minus sign is one."""
    if isinstance(value, int):
        return str(value).replace("-", "−")
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return (
            f"{value:.{digits}g}".replace("-", "−") if abs(value) < 1e4 else f"{value:.0f}".replace("-", "−")
        )
    mantissa, _, power = f"{value:.{digits - 2}e}".partition("e")
    return f"{mantissa.replace('-', '−')} × 10{str(int(power)).translate(_RAISED)}"


def brief(value: Any, depth: int = 0) -> str:
    """One line for any measured value."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        parts = [f"{key}: {brief(entry, depth + 1)}" for key, entry in list(value.items())[:SHOWN]]
        text = "; ".join([*parts, *_more(value)])
        return f"({text})" if depth else text
    if isinstance(value, list | tuple):
        return f"[{', '.join([*(brief(entry, depth + 1) for entry in value[:SHOWN]), *_more(value)])}]"
    return str(value)


def pairs(value: Any) -> list[tuple[str, str]]:
    """A measurement as (name, text), one for each entry of a table."""
    if isinstance(value, Mapping):
        return [(str(key), brief(entry, 1)) for key, entry in value.items()]
    return [("", brief(value))]


def _more(value: Any) -> list[str]:
    return [f"… ({len(value)})"] if len(value) > SHOWN else []
