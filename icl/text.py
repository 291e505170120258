"""Numbers and verdicts as text, one way for the terminal, notebooks, the report and the docs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from icl.verdicts import KINDS, VERDICTS, error_of, has_error

SHOWN = 8  # entries of a list or table before it is cut
WRITTEN = 17  # letters of a fraction that is written out


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
    if wanted == "=":
        return Relation(name, value, "=" if value == limit else "≈", limit)
    if value == limit:
        return Relation(name, value, "≤" if wanted == "<" else "≥", limit)
    return Relation(name, value, "<" if value < limit else ">", limit)


def inequality(compared: Relation) -> str:
    """Return the relation in plain text: gradient_norm 3e-15 < 2e-13."""
    name, value, sign, limit = compared
    left, right = distinct(value, limit)
    return f"{name} {left}" if isinstance(value, bool) else f"{name} {left} {sign} {right}".strip()


def distinct(left: Any, right: Any) -> tuple[str, str]:
    """Return both with as many digits as show which is larger: 53.970856 < 54."""
    for count in (3, 6, 12, 15):
        texts = brief(left, count), brief(right, count)
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


# Settings that a verdict's sentence always gives, and the letters that the papers write for settings.


class ShownNumber(NamedTuple):
    """A measured number as text. A table's entries stand below it, and its value is empty."""

    name: str
    value: str
    kind: str
    meaning: str
    entries: tuple[tuple[str, str], ...] = ()


def numbers(document: Mapping[str, Any]) -> Iterator[ShownNumber]:
    """Yield every number of a check that has a value, each with its bound; standard errors and bounds stand
    with the number that they are of."""
    measured, meanings = document["measured"], document.get("meanings") or {}
    bounds = document.get("bounds") or {document["bound"]["of"]: document["bound"]}
    below = {*map(error_of, measured), *(f"{name}_bound" for name in measured)}
    for name, value in measured.items():
        if name in below or value is None or value in ({}, []):
            continue
        kind, meaning = kind_in_words(document, name), meanings.get(name, "")
        if isinstance(value, Mapping):
            entries = tuple((str(key), brief(entry)) for key, entry in list(value.items())[:SHOWN])
            more = ((f"… ({len(value)})", ""),) if len(value) > SHOWN else ()
            yield ShownNumber(name, "", kind, meaning, entries + more)
            continue
        text = brief(value)
        written = str((document.get("exact") or {}).get(name, ""))
        is_short = written != "" and len(written) <= WRITTEN and not written.startswith("[")
        if name in bounds and not (is_short and bounds[name]["direction"] == "="):
            compared = relation(measured, {**bounds[name], "of": name})
            text = inequality(compared).removeprefix(name).strip()
        elif is_short:
            text = written
        yield ShownNumber(name, text, kind, meaning)


def brief(value: Any, digits: int = 4, *, nested: bool = False) -> str:
    """Any measured value in one line; long lists and tables are cut, `nested` puts a table in parentheses."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if not isinstance(value, Mapping | list | tuple):
        return str(value)
    more = [f"… ({len(value)})"] if len(value) > SHOWN else []
    if isinstance(value, Mapping):
        first = list(value.items())[:SHOWN]
        entries = [f"{key}: {brief(entry, digits, nested=True)}" for key, entry in first]
        text = "; ".join([*entries, *more])
        return f"({text})" if nested else text
    return f"[{', '.join([*(brief(entry, digits, nested=True) for entry in value[:SHOWN]), *more])}]"


def tries_in_words(tries: Mapping[str, Any]) -> str:
    """Return the verdicts at random settings, as `holds at 5, fails at 15 (as expected)`."""
    told = ", ".join(f"{verdict} at {tries[verdict]}" for verdict in VERDICTS if tries.get(verdict))
    return told + (" (as expected)" if tries.get("fails") and not tries["smallest_counterexample"] else "")
