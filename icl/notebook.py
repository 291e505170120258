"""A document of the contract that shows itself in a notebook: a plain dict otherwise."""

import base64
import functools
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.metrics import kind_of
from icl.report.templates import verdicts
from icl.text import brief
from icl.verdicts import error_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ResultDict(dict[str, Any]):
    """The document that `icl ... format=json` prints, with a display for notebooks."""

    def _repr_html_(self) -> str:
        return "".join(_html(self))


class FigureDict(ResultDict):
    """The document of a figure, with `.figure`, a matplotlib Figure."""

    def __init__(self, document: Mapping[str, Any], draw: Callable[[], "Figure"]) -> None:
        super().__init__(document)
        self._draw = draw

    @functools.cached_property
    def figure(self) -> "Figure":
        return self._draw()


def _html(document: Mapping[str, Any]) -> Iterator[str]:
    for part in [*document.get("checks", []), *document.get("figures", [])]:
        yield from _html(part)
    if "verdict" in document:
        yield verdicts(document)
    elif "figure" in document:
        yield from _figure(document)
    elif "metrics" in document:
        yield from _run(document)
    for what in [*document.get("failures", []), *document.get("skipped", [])]:
        yield f"<p>{escape(what['id'])}: {escape(what.get('error') or what.get('reason'))}</p>"
    if isinstance(document.get("report"), str):
        yield f"<p>{escape(document['report'])}</p>"


def _figure(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p><b>{escape(document['figure'])}</b> at {escape(document['scale'])}</p>"
    picture = Path(document["files"].get("png", ""))
    if picture.is_file():
        data = base64.b64encode(picture.read_bytes()).decode()
        yield f'<img alt="{escape(document["figure"])}" src="data:image/png;base64,{data}">'
    yield verdicts(document)


def _run(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>{escape(document['run_dir'])}: {document['steps']} steps</p><table>"
    for name, entry in document["metrics"].items():
        errors = document["metrics"].get(error_of(name), {"by_seed": {}})["by_seed"].values()
        kind = kind_of(name, list(errors))
        text = brief(entry["mean"]) + (f" ({kind})" if kind else "")
        yield f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
    yield "</table>"
    for verdict in document["verdicts"]:
        yield verdicts(verdict)
