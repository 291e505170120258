"""The three verdicts, how those of several parts make one, the inequality that a verdict rests on, and what
kind of number it is. Shared by checks and figures and by all that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

VERDICTS = ("holds", "fails", "undecided")

# How a measured number came about, and the words for it.
KINDS = {
    "exact": "exact",  # from formulas: no error but rounding
    "tried": "at points tried",  # the same at prompts, weights or problems, drawn or given: the worst of them
    "searched": "found by search",  # the best that a search found: another may find a better one
    "sampled": "sampled",  # of random draws: it has a standard error, or an interval
    "projected": "projected",  # exact, but of the nearest weights on a theorem's set
}


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


def kinds_of(measured: Mapping[str, Any], declared: Mapping[str, str], decides: str = "") -> dict[str, str]:
    """Of each number, by the last pattern in `declared` that its name fits. What has a standard error is
    sampled, whatever is declared, unless the error is 0. A whole number that is exact needs no word, but for
    the one that decides."""
    kinds = {}
    for name in measured.keys() - set(map(error_of, measured)):
        fitting = [kind for pattern, kind in declared.items() if fnmatchcase(name, pattern)]
        kind = "sampled" if _some(measured.get(error_of(name))) else fitting[-1] if fitting else ""
        counts = isinstance(measured[name], int | str | None) and name != decides
        if kind and not (counts and kind == "exact"):
            kinds[name] = kind
    return {name: kinds[name] for name in measured if name in kinds}


def error_of(name: str) -> str:
    """What holds this number's standard error, where there is one."""
    return f"{name}_stderr"


def kind_in_words(document: Mapping[str, Any], name: str) -> str:
    """`exact`, `sampled, ± 0.02`; "" where a check does not say."""
    kind = (document.get("kinds") or {}).get(name, "")
    error = (document.get("measured") or {}).get(error_of(name))
    word = KINDS.get(kind, kind)
    return f"{word}, \N{PLUS-MINUS SIGN} {brief(error, 2)}" if word and _some(error) else word


def measurement(document: Mapping[str, Any]) -> str:
    """What a check measured, and which kind of number it is: `gradient_norm 3e-15 < 2e-13 (exact)`."""
    kind = kind_in_words(document, document["bound"].get("of", ""))
    return inequality(document["measured"], document["bound"]) + (f" ({kind})" if kind else "")


def _some(error: Any) -> bool:
    return any(map(_some, error)) if isinstance(error, list | tuple) else bool(error)


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
