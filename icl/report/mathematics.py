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
_GREEK = "Sigma Lambda Delta Phi alpha beta gamma delta eta theta kappa lambda mu rho sigma tau phi eps"
_LETTERS = dict(zip(_GREEK.split(), "ΣΛΔΦαβγδηθκλμρστφε", strict=True))
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→"}
_INDEX = r"(\([^()\s]*\)|\{[^{}]*\}|-?1/2|-?\d+|-?[A-Za-z]\w?|\*|max|min)(?!\w)"
_CODE = re.compile(  # `...`, KEY=VALUE, and names with an underscore
    r"`[^`]+`|(?<![\w.])[A-Za-z_][\w.]+=[^\s,;)]*[^\s,;).]"
    rf"|(?<![\w.])(?!(?:{'|'.join(_LETTERS)})_)[A-Za-z]{{2,}}\w*_\w{{2,}}"
)
_NAMED = re.compile(rf"(?<![\w.])({'|'.join(_LETTERS)})(?![A-Za-z0-9=]|\.\w)|(?<!\S)(<=|>=|!=|\+-|->)(?=\s)")
_TYPED = re.compile(
    rf"""(?<![\w.])(?P<digits>-?\d+(?:\.\d+)?)e(?P<power>[+-]?\d+)(?!\w)
    | (?<=[\w*~')\]|>])\^{_INDEX.replace("(", "(?P<above>", 1)}
    | (?<![\w.]\w)(?<=[^\W\d_]|[*~'])_{_INDEX.replace("(", "(?P<below>", 1)}""",
    re.VERBOSE,
)
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


def formulas(text: str) -> Markup:
    """Plain text with Greek letters, indices, powers and signs typeset, where they are as simple as Sigma^-1
    and A_l. Names with an underscore and KEY=VALUE are code."""
    from markupsafe import Markup

    parts, end = Markup(), 0
    for match in _CODE.finditer(text):
        parts += _typeset(text[end : match.start()]) + Markup("<code>{}</code>").format(match[0].strip("`"))
        end = match.end()
    return parts + _typeset(text[end:])


def _typeset(text: str) -> Markup:
    from markupsafe import Markup, escape

    text, parts, end = _NAMED.sub(lambda named: (_LETTERS | _SIGNS)[named[0]], text), Markup(), 0
    for match in _TYPED.finditer(text):
        parts, end = parts + escape(text[end : match.start()]), match.end()
        if match["digits"]:
            number = Markup("{} × 10<sup>{}</sup>").format(match["digits"], str(int(match["power"])))
            parts += number.replace("-", "\N{MINUS SIGN}")
        else:
            tag, index = ("sup", match["above"]) if match["above"] else ("sub", match["below"])
            shown = re.sub(r"^(-?)T$", r"\1⊤", index) if tag == "sup" else index
            shown = shown.strip("(){}").replace("-", "\N{MINUS SIGN}")
            parts += Markup(f"<{tag}>{{}}</{tag}>").format(shown)
    return parts + escape(text[end:])
