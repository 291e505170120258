"""LaTeX between dollar signs -> MathML, which a browser draws by itself: no script and no network."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markupsafe import Markup

_SPACE = "http://www.w3.org/1998/Math/MathML"
# What LaTeX may become; a config's formula brings in no link, style or script.
_TAGS = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mmultiscripts", "mtable", "mtr", "mtd", "mpadded", "mphantom", "mstyle",
    "menclose",
}  # fmt: skip
_ATTRIBUTES = {
    "display", "displaystyle", "stretchy", "fence", "form", "separator", "accent", "accentunder", "minsize",
    "maxsize", "linethickness", "mathvariant", "columnalign", "rowspacing", "columnspacing", "width",
    "lspace", "rspace", "movablelimits", "largeop", "symmetric",
}  # fmt: skip
_BETWEEN_DOLLARS = re.compile(r"\$([^$]+)\$")


@functools.cache
def mathml(latex: str, display: str = "inline") -> Markup:
    """Return a <math> element; the LaTeX itself where it is none."""
    from latex2mathml.converter import convert
    from markupsafe import Markup, escape

    try:
        root = ElementTree.fromstring(convert(latex, display=display))
        for node in root.iter():
            node.tag = node.tag.removeprefix(f"{{{_SPACE}}}")
            node.attrib = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
            if node.tag not in _TAGS:
                raise ValueError(f"{node.tag} is no mathematics")
    except Exception:  # whatever a config's LaTeX makes of the library
        return Markup(f"<code>{escape(latex)}</code>")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def prose(text: str) -> Markup:
    """Text with its mathematics, all else escaped."""
    from markupsafe import Markup, escape

    parts = _BETWEEN_DOLLARS.split(text)
    return Markup("").join(mathml(part) if i % 2 else escape(part) for i, part in enumerate(parts))
