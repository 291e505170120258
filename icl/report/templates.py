"""The templates: how a verdict is written for the page and for a notebook."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.report import mathematics
from icl.report.entries import ReportEntry
from icl.report.statements import anchor, statements_of
from icl.text import brief

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HERE = Path(__file__).parent


def verdicts(document: Mapping[str, Any]) -> "Markup":
    """Return the verdict of a check, or of each claim of a figure, as HTML that needs no style sheet."""
    group = "figure" if "figure" in document else "check"
    name, title = str(document[group]), str(document.get("title", ""))
    reference = str(document.get("reference", ""))
    entry = ReportEntry(group, name, "", reference, "", document=document, title=title)
    macros: Any = environment().get_template("verdict.html.jinja").module
    return macros.several(statements_of(entry))


@functools.cache
def environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {"brief": brief, "math": mathematics.prose, "mathml": mathematics.mathml}
    made.globals["anchor"] = anchor
    return made
