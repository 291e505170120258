"""The three verdicts, how those of several parts make one, and the inequality that a verdict rests on. Shared
by checks and figures and by all that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

VERDICTS = ("holds", "fails", "undecided")


def joint(verdicts: Sequence[str]) -> str:
    """Of several parts: one that fails decides; else one that is undecided."""
    return next((verdict for verdict in ("fails", "undecided") if verdict in verdicts), "holds")


class Relation(NamedTuple):
    """`name` measured as `value`, and how that compares with `bound`: gradient_norm 3e-15 < 2e-13."""

    name: str
    value: Any
    sign: str
    bound: float | None


def relation(measured: Mapping[str, Any], bound: Mapping[str, Any]) -> Relation:
    """Of a check's document: what the bound is `of`, as it is; where it is undefined, as it should be."""
    name = bound.get("of") or next(iter(measured), "")
    value, limit, wanted = measured.get(name), bound.get("value"), bound.get("direction", "<")
    if not isinstance(value, int | float) or limit is None:
        return Relation(name, value, wanted, limit)
    if value == limit:
        return Relation(name, value, "≤" if wanted == "<" else "≥", limit)
    return Relation(name, value, "<" if value < limit else ">", limit)


def inequality(measured: Mapping[str, Any], bound: Mapping[str, Any]) -> str:
    """The relation in plain text."""
    name, value, sign, limit = relation(measured, bound)
    return " ".join(filter(None, [name, brief(value, 3), sign, brief(limit, 3)]))


def outcome(claim: Mapping[str, Any]) -> str:
    """The verdict; where it is not `holds`, whether that was to be expected."""
    if claim["verdict"] != claim["expected"]:
        return f"{claim['verdict']} (expected: {claim['expected']})"
    return claim["verdict"] if claim["verdict"] == "holds" else f"{claim['verdict']}, as expected"


def brief(value: Any, digits: int = 4) -> str:
    """Any measured value in a line of plain text."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, Mapping):
        texts = {key: brief(entry, digits) for key, entry in value.items()}
        nested = {key for key, entry in value.items() if isinstance(entry, Mapping)}
        return ", ".join(
            f"{key} ({text})" if key in nested else f"{key} {text}" for key, text in texts.items()
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(brief(entry, digits) for entry in value)}]"
    return "-" if value is None else str(value)
