"""A document of the contract that shows itself in a notebook: a plain dict otherwise."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.metrics import kind_of
from icl.text import brief, control_sentence, measurement, numbers
from icl.verdicts import KINDS, error_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"holds": "#1a7f37", "fails": "#b35900", "undecided": "#666666"}


class ResultDict(dict[str, Any]):
    """The document that `icl ... format=json` prints, with a display for notebooks."""

    def _repr_html_(self) -> str:
        return "".join(_html(self))


class FigureDict(ResultDict):
    """The document of a figure, with `.figure`, a matplotlib Figure."""

    def __init__(self, document: Mapping[str, Any], draw: Callable[[], Figure]) -> None:
        super().__init__(document)
        self._draw = draw

    @functools.cached_property
    def figure(self) -> Figure:
        return self._draw()


def _html(document: Mapping[str, Any]) -> Iterator[str]:
    for part in [*document.get("checks", []), *document.get("figures", [])]:
        if isinstance(part, Mapping):
            yield from _html(part)
    if "verdict" in document:
        yield from _check(document)
    elif "figure" in document:
        yield from _figure(document)
    elif "metrics" in document:
        yield from _run(document)
    for what in [*document.get("failures", []), *document.get("skipped", [])]:
        yield f"<p>{escape(what['id'])}: {escape(what.get('error') or what.get('reason'))}</p>"
    if isinstance(document.get("report"), str):
        yield f"<p>{escape(document['report'])}</p>"


def _check(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p><b>{escape(document.get('title', document['check']))}</b> {_pill(document)}<br>"
    yield f"{escape(document.get('sentence') or measurement(document))}<br>"
    yield f"{escape(document.get('control_sentence') or control_sentence(document))}</p>"
    yield f"<details><summary>Claim, numbers and notes</summary><p>Claim: {escape(document['claim'])} "
    yield f"({escape(document['reference'])})</p><table style='text-align: left'>"
    for number in numbers(document):
        kind = f" ({number.kind})" if number.kind else ""
        entries = [f"{name}: {value}" for name, value in number.entries]
        value = "<br>".join(escape(text) for text in [f"{number.value}{kind}".strip(), *entries] if text)
        told = escape(number.meaning)
        yield f"<tr><th>{escape(number.name)}</th><td>{value}</td><td>{told}</td></tr>"
    yield f"</table><p>Bound: {escape(document['bound']['source'])}.</p>"
    yield from (f"<p>Note: {escape(note)}</p>" for note in document["notes"])
    yield "</details>"
    if document.get("record"):
        yield f"<p>{escape(document['record'])}</p>"


def _figure(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p><b>{escape(document['figure'])}</b> at {escape(document['scale'])}</p>"
    picture = Path(document["files"].get("png", ""))
    if picture.is_file():
        data = base64.b64encode(picture.read_bytes()).decode()
        yield f'<img alt="{escape(document["figure"])}" src="data:image/png;base64,{data}">'
    yield "<table>"
    for claim in document["claims"]:
        yield f"<tr><td>{_pill(claim)}</td><td>{escape(claim['claim'])}</td>"
        kind = KINDS.get(claim.get("kind", ""), "")
        yield f"<td>{escape(brief(claim['measured']))}</td><td>{kind}</td>"
        yield f"<td>{escape(brief(claim['bound']))}</td></tr>"
    yield "</table>"


def _run(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>{escape(document['run_dir'])}: {document['steps']} steps</p><table>"
    for name, entry in document["metrics"].items():
        errors = document["metrics"].get(error_of(name), {"by_seed": {}})["by_seed"].values()
        kind = kind_of(name, list(errors))
        yield _row(name, brief(entry["mean"]) + (f" ({kind})" if kind else ""))
    yield "</table>"
    for verdict in document["verdicts"]:
        yield from _check(verdict)


def _row(name: str, text: str) -> str:
    return f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"


def _pill(claim: Mapping[str, Any]) -> str:
    verdict, expected = claim["verdict"], claim["expected"]
    odd = "" if verdict == expected else f" (expected: {escape(expected)})"
    return f'<b style="color:{_COLOURS.get(verdict, "inherit")}">{escape(verdict)}</b>{odd}'
