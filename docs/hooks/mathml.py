"""Convert formulas to MathML when the site is built, so that a browser fetches and runs nothing for them."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MARKED = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    return _MARKED.sub(_mathml, content)


def _mathml(marked: re.Match[str]) -> str:
    r"""Return the MathML of the text between \( and \), or between \[ and \]."""
    latex = html.unescape(marked[2]).strip()[2:-2].strip()
    if marked[1] == "span":
        return convert(latex)
    return f'<div class="formula">{convert(latex, display="block")}</div>'
