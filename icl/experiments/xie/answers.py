"""The score a language model's answer gives, if it plainly gives one.

Nothing is guessed, clipped or averaged: several different scores, a range, a number outside [0, 5] or on
another scale, and a refusal are no score, and are counted as such by who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icl.experiments.xie.similarity import HIGH, LOW

_DIGITS = r"(?:\d+(?:\.\d+)?|\.\d+)"
_NUMBER = rf"(?<![\w.,/+\-−±])({_DIGITS})(?![\w%/]|[.,]\d|\s*[%±])"
_BETTER = r"(?:final|refined|improved|updated|revised|adjusted|new|better|predicted|estimated)"
_MORE = r"(?:my|the|so|thus|therefore|similarity|semantic|overall|query)"
_NOUN = r"(?:score|rating|answer|similarity|estimate|prediction)"
_ABOUT = r"(?:(?:about|approximately|around|roughly)\s+|[~≈]\s*)?"

_FORMAT = re.compile(r"\\boxed|\\text|\\[()\[\]]|[*_`${}]")
_SCALES = [
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), left)
    for pattern, left in (
        (
            r"(?:\b(?:between|from|scale of|range of)\s+)?(?<![\d.])0(?:\.0+)?\s*(?:to|and|-|–|—)\s*"
            r"5(?:\.0+)?(?![\d.]*\d)",
            " ",
        ),
        (r"\s*(?:/|\bout of\b)\s*5(?:\.0+)?(?![\d%/]|\.\d)", " "),  # of 3.5/5
        (
            r"\b(?:sentences?|examples?|pairs?|quer(?:y|ies))\s+#?\d+(?:\s*(?:,|and|&)\s*\d+)*\b(?!\.\d)",
            " pair ",
        ),
        (r"^[ \t]*\d+[.)][ \t]+(?=\S)", ""),  # the 1. of a list
    )
]
_GUESS = re.compile(  # the guess repeated, not refined
    rf"(?:\b(\w+)\s+)?\b(?:guess|(?:initial|prior|original)\s+(?:similarity\s+)?{_NOUN})(?:es)?\b"
    rf"\W*(?:(?:of|is|was|at|score)\b\W*)*{_DIGITS}\)?",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"{_DIGITS}\s*(?:-|–|—|±|\+/-|\b(?:to|and|or)\b)\s*{_DIGITS}", re.IGNORECASE)
_LINE = re.compile(  # Score: 3.5, or the number alone
    rf"^[\W_]*?(?:(?:(?:{_BETTER}|{_MORE})[\s,]+)*(?:{_NOUN}|{_BETTER}(?:\s+guess)?)"
    rf"\s*(?:is|would be|should be)?\s*[:=]?\s*)?{_ABOUT}{_NUMBER}[\s.!)\]\"]*$",
    re.IGNORECASE,
)
_WORDS = r"[A-Za-z ,'’\"()-]{0,80}?"
_VERB = (
    r"(?:rate|give|assign|estimate|predict|suggest"
    r"|refine|adjust|revise|update|increase|decrease|raise|lower)"
)
_STATED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_NOUN}\b{_WORDS}(?:\b(?:is|of|as|to|at|be)\b|:|=)\s*{_ABOUT}{_NUMBER}",
        rf"\b{_VERB}(?:d|s|ing)?\b{_WORDS}\s{_ABOUT}{_NUMBER}"
        r"(?!\s+(?!because|since|as|for|given|based|on|and)[a-z])",
    )
]


def parse_score(text: str) -> float | None:
    """Return the one score in [0, 5] that `text` gives, or None.

    Lines that are a score and nothing else ("Score: 3.5", "**4**", "3.5/5") decide where there are any; else
    statements in running text ("I would rate it 3.5"). All that decide must agree.
    """
    plain = _without_what_is_no_answer(text)
    found = set(_lines(plain)) or set(_statements(plain))
    score = found.pop() if len(found) == 1 else None
    return score if score is not None and LOW <= score <= HIGH else None


def _without_what_is_no_answer(text: str) -> str:
    text = _FORMAT.sub("", text)
    for pattern, left in _SCALES:
        text = pattern.sub(left, text)
    return _GUESS.sub(_refined_only, text)


def _refined_only(guess: re.Match[str]) -> str:
    return guess[0] if re.fullmatch(_BETTER, guess[1] or "", re.IGNORECASE) else " "


def _lines(text: str) -> Iterator[float]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            yield float(match[1])


def _statements(text: str) -> Iterator[float]:
    if _RANGE.search(text):
        return
    for pattern in _STATED:
        yield from (float(match[1]) for match in pattern.finditer(text))
