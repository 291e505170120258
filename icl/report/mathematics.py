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
_GREEK = {
    **{name: f"\\{name}" for name in (
        "Sigma", "Lambda", "Delta", "Phi", "alpha", "beta", "gamma", "delta", "eta", "theta", "kappa",
        "lambda", "mu", "rho", "sigma", "tau", "phi",
    )},
    "eps": r"\varepsilon",
}  # fmt: skip
_RELATIONS = {
    "<=": "\N{LESS-THAN OR EQUAL TO}",
    ">=": "\N{GREATER-THAN OR EQUAL TO}",
    "!=": "\N{NOT EQUAL TO}",
    "+-": "\N{PLUS-MINUS SIGN}",
    "->": "\N{RIGHTWARDS ARROW}",
}
_RAISED = {"T": r"\top", "-T": r"-\top"}
_PLAIN_RAISED = str.maketrans({"T": "\N{DOWN TACK}", "-": "\N{MINUS SIGN}"})
_INDEX = r"\((?:[^()\s]|\s[+-]\s)*\)|\{(?:[^{}]|\{[^{}]*\})*\}"
_TYPED = re.compile(
    rf"""
      (?P<code> `[^`]+` | (?<![\w.]) [A-Za-z_][\w.]+ = [^\s,;)]*[^\s,;).] )
    | (?P<digits> (?<![\w.]) -?\d+(?:\.\d+)? ) e(?P<power> [+-]?\d+ ) (?!\w)
    | (?P<sign> (?<!\S)(?:<=|>=|!=|\+-|->)(?=\s) )
    | (?<![\w.~]) (?P<base>
            (?:{"|".join(_GREEK)}) (?:'(?![a-z]))?
          | [A-Za-z] (?:~(?=_) | \*(?=[\s,.;:|)\]>^-]|$) | (?=[_^]))
          | \d+ (?=\^) )
      (?: _ (?P<below> {_INDEX} | \* | max | min | (?: [A-Za-z0-9]{{1,2}} | test | best ) (?!\() ) (?!\w) )?
      (?: \^ (?P<above> {_INDEX} | -?1/2 | -?\d+ | -?[A-Za-z] | \* ) (?!\w) )?
      (?! [\w_=] | \.\w | [-/]\w*_ )
    | (?P<name> (?<![\w.]) [A-Za-z]{{2,}}\w*_\w{{2,}} )
    | (?<=[)\]|>]) \^ (?P<raised> {_INDEX} | -?1/2 | -?\d+ | -?[A-Za-z] ) (?!\w)
    """,
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
        _refuse_unknown(root)
    except Exception:  # whatever a config's LaTeX makes of the library
        return Markup(f"<code>{escape(latex)}</code>")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def prose(text: str) -> Markup:
    """Text with its mathematics, all else escaped."""
    from markupsafe import Markup, escape

    parts = _BETWEEN_DOLLARS.split(text)
    return Markup("").join(mathml(part) if i % 2 else escape(part) for i, part in enumerate(parts))


def formulas(text: str) -> Markup:
    """Plain text with the formulas in it typeset, where they are as simple as Sigma^-1, A_l and |w*|^2.

    Each <math> keeps what was typed as its alternative text. Names with an underscore and KEY=VALUE are code.
    """
    from markupsafe import Markup, escape

    parts, end = [], 0
    for match in _TYPED.finditer(text):
        parts.append(escape(text[end : match.start()]))
        end = match.end()
        if match["code"] or match["name"]:
            parts.append(Markup("<code>{}</code>").format(match[0].strip("`")))
        elif match["digits"]:
            parts.append(_scientific(match["digits"], int(match["power"])))
        elif match["sign"]:
            parts.append(Markup(_RELATIONS[match[0]]))
        elif match["raised"]:
            parts.append(Markup("<sup>{}</sup>").format(match["raised"].strip("{}").translate(_PLAIN_RAISED)))
        else:
            parts.append(_with_alternative(mathml(_latex(match)), match[0]))
    return Markup("").join([*parts, escape(text[end:])])


def _scientific(digits: str, power: int) -> Markup:
    from markupsafe import Markup

    minus = "\N{MINUS SIGN}"
    shown = digits.replace("-", minus), str(power).replace("-", minus)
    return Markup("{} \N{MULTIPLICATION SIGN} 10<sup>{}</sup>").format(*shown)


def _latex(match: re.Match[str]) -> str:
    base, above = match["base"], match["above"] or ""
    letter = base.rstrip("~'*")
    latex = _GREEK.get(letter, letter)
    if "~" in base:
        latex = rf"\tilde{{{latex}}}"
    if match["below"]:
        latex += f"_{{{_index(match['below'])}}}"
    raised = r"\star" * ("*" in base) + r"\prime" * ("'" in base) + _RAISED.get(above, _index(above))
    return f"{latex}^{{{raised}}}" if raised else latex


def _index(text: str) -> str:
    """Return the LaTeX of a subscript or a power."""
    text = text[1:-1] if text[:1] in ("(", "{") else text
    if text == "*":
        return r"\star"
    if text.isalpha() and len(text) > 2:
        return rf"\mathrm{{{text}}}"
    return re.sub(r"\bl\b", r"\\ell", text)


def _with_alternative(shown: Markup, typed: str) -> Markup:
    from markupsafe import Markup, escape

    return Markup(str(shown).replace("<math", f'<math alttext="{escape(typed)}"', 1))


def _refuse_unknown(node: ElementTree.Element) -> None:
    node.tag = node.tag.removeprefix(f"{{{_SPACE}}}")
    if node.tag not in _TAGS:
        raise ValueError(f"{node.tag} is no mathematics")
    if node.tag == "mtext" and node.text:  # spaces at its ends would be dropped
        node.text = re.sub(r"^ | $", "\N{NO-BREAK SPACE}", node.text)
    node.attrib = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    for child in node:
        _refuse_unknown(child)
