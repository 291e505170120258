"""Numbers and verdicts as text, one way for the terminal, notebooks, the report and the docs.

Typeset text has a minus sign, and powers of ten as 2.11 × 10⁻¹⁶.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from icl.verdicts import KINDS, error_of, has_error

SHOWN = 8  # entries of a list or table before it is cut
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Relation(NamedTuple):
    """`name` measured as `value`, and how that compares with `bound`: gradient_norm 3e-15 < 2e-13."""

    name: str
    value: Any
    sign: str
    bound: float | None


def relation(measured: Mapping[str, Any], bound: Mapping[str, Any]) -> Relation:
    """Compare what a check measured with its bound; the wanted sign where one of them is no number."""
    name = bound.get("of") or next(iter(measured), "")
    value, limit, wanted = measured.get(name), bound.get("value"), bound.get("direction", "<")
    if not isinstance(value, int | float) or limit is None:
        return Relation(name, value, wanted, limit)
    if value == limit:
        return Relation(name, value, "≤" if wanted == "<" else "≥", limit)
    return Relation(name, value, "<" if value < limit else ">", limit)


def inequality(compared: Relation) -> str:
    """Return the relation in plain text: gradient_norm 3e-15 < 2e-13."""
    name, value, sign, limit = compared
    left, right = _distinct(value, limit, brief, (3, 6, 12, 15))
    return f"{name} {left} {sign} {right}".strip()


def typeset_inequality(compared: Relation) -> str:
    """Return the relation for a page: gradient norm 6.27 × 10⁻¹⁵ < 7.26 × 10⁻¹¹."""
    name = compared.name.replace("_", " ")
    if compared.bound is None or not is_number(compared.value):
        return f"{name} {typeset(compared.value, nested=True)}".strip()
    left, right = _distinct(compared.value, compared.bound, typeset, (4, 8, 13))
    return f"{name} {left} {compared.sign} {right}"


def _distinct(
    left: Any, right: Any, text: Callable[[Any, int], str], digits: Sequence[int]
) -> tuple[str, str]:
    """Both with as many digits as show which is larger: 53.970856 < 54."""
    for count in digits:
        texts = text(left, count), text(right, count)
        if texts[0] != texts[1] or left == right:
            break
    return texts


def measurement(document: Mapping[str, Any]) -> str:
    """Return a check's measurement and its kind: `gradient_norm 3e-15 < 2e-13 (exact)`."""
    compared = relation(document["measured"], document["bound"])
    kind = kind_in_words(document, compared.name)
    return inequality(compared) + (f" ({kind})" if kind else "")


def kind_in_words(document: Mapping[str, Any], name: str) -> str:
    """`exact`, `sampled, ± 0.02`; "" where a check does not say."""
    kind = (document.get("kinds") or {}).get(name, "")
    error = (document.get("measured") or {}).get(error_of(name))
    word = KINDS.get(kind, kind)
    return f"{word}, \N{PLUS-MINUS SIGN} {brief(error, 2)}" if word and has_error(error) else word


def outcome(claim: Mapping[str, Any]) -> str:
    """Return the verdict and, where it is not the expected one, what was expected; an expected `fails` is
    known false. Undecided is undecided, expected or not."""
    if claim["verdict"] != claim["expected"]:
        return f"{claim['verdict']} (expected: {claim['expected']})"
    return "fails (known false)" if claim["verdict"] == "fails" else str(claim["verdict"])


def brief(value: Any, digits: int = 4) -> str:
    """Any measured value in one line of plain text; long lists and tables are cut."""
    return _in_a_line(
        value, "-", lambda entry: f"{entry:.{digits}g}" if isinstance(entry, float) else str(entry)
    )


def typeset(value: Any, digits: int = 4, *, nested: bool = False) -> str:
    """Any measured value in one line for a page; `nested` puts a table in parentheses."""
    return _in_a_line(value, "\N{EN DASH}", lambda x: _typeset(x, digits), nested)


def named_values(value: Any) -> list[tuple[str, str]]:
    """Return a measurement typeset as (name, text), one for each entry of a table."""
    if isinstance(value, Mapping):
        return [(str(key), typeset(entry, nested=True)) for key, entry in value.items()]
    return [("", typeset(value))]


def _in_a_line(value: Any, nothing: str, number: Callable[[float], str], nested: bool = False) -> str:
    if value is None:
        return nothing
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value)
    if not isinstance(value, Mapping | list | tuple):
        return str(value)
    more = [f"… ({len(value)})"] if len(value) > SHOWN else []
    if isinstance(value, Mapping):
        first = list(value.items())[:SHOWN]
        entries = [f"{key}: {_in_a_line(entry, nothing, number, True)}" for key, entry in first]
        text = "; ".join([*entries, *more])
        return f"({text})" if nested else text
    return f"[{', '.join([*(_in_a_line(entry, nothing, number, True) for entry in value[:SHOWN]), *more])}]"


def _typeset(value: float, digits: int) -> str:
    if isinstance(value, int):
        text = str(value)
    elif value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:.{digits}g}" if abs(value) < 1e4 else f"{value:.0f}"
    else:
        text, _, power = f"{value:.{digits - 2}e}".partition("e")
        text += f" × 10{str(int(power)).translate(_RAISED)}" if power else ""
    return text.replace("-", "\N{MINUS SIGN}")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV with Unix line ends; a cell that a row lacks is empty."""
    names = dict.fromkeys(name for row in rows for name in row) if columns is None else columns
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
