"""Mathematics becomes MathML when the pages are built: a reader's browser fetches and runs nothing for it."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MARKED = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    return _MARKED.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    r"""What stands between \( and \), or between \[ and \]."""
    latex = html.unescape(found[2]).strip()[2:-2].strip()
    if found[1] == "span":
        return convert(latex)
    return f'<div class="formula">{convert(latex, display="block")}</div>'
