"""A verdict and its control as a sentence each."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.text import brief, distinct, kind_in_words, relation

_SMALL = 3  # rows of a matrix that a sentence writes out
_ALWAYS = ("dim", "d", "context", "n", "contexts", "length", "layers", "order", "window", "setting", "mu")
_LETTERS = {
    "dim": "d", "context": "n", "contexts": "n", "length": "T", "layers": "L", "window": "s", "heads": "H",
    "order": "k", "condition": "kappa", "eta": "eta", "prior_mean": "w*", "prior_mean_norm": "|w*|",
    "guess_vector": "v", "guess_vector_norm": "|v|", "guess_bias": "b", "covariance": "Sigma",
    "eigenvalues": "Sigma", "distortion": "W", "design": "A",
}  # fmt: skip
_LETTERS_OF = {"xie": {"context": "C", "contexts": "C"}}
_NUMBERED = r"(Theorem|Lemma|Proposition|Corollary|Observation|Remark)s? "
_REASON = "undecided: "  # how a note begins that says why a verdict is undecided


def verdict_sentence(document: Mapping[str, Any], changed: Sequence[str] = ()) -> str:
    """Return a check's verdict in one sentence: what it is about, at which settings, by which measurement.
    `changed` names the settings that are not the config's own."""
    subject, plural = _subject(document)
    known_false = document["expected"] == "fails"
    verb = {
        "holds": ("holds", "hold"),
        "fails": ("is false", "are false") if known_false else ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
    }[document["verdict"]][plural]
    evidence = _evidence(document)
    if document["bound"].get("direction") != "true" and not evidence.startswith("the "):
        evidence = f"the {evidence}"
    other = (document.get("tries") or {}).get("smallest_counterexample")
    if other is not None:
        elsewhere = _where({**document, "settings": other}, tuple(other))
        return (
            f"{subject} {verb}{elsewhere}.{_where(document, changed).replace(' at', ' At', 1)}, {evidence}."
        )
    if document["verdict"] == "undecided":
        notes = [str(note) for note in document["notes"]]
        reasons = [note.removeprefix(_REASON).rstrip(".") for note in notes if note.startswith(_REASON)]
        evidence = "; ".join([evidence, *(reasons[:1] or ["the measurement does not decide it"])])
    return f"{subject} {verb}{_where(document, changed)}: {evidence}."


def control_sentence(document: Mapping[str, Any]) -> str:
    """Return in one sentence whether a check's control was rejected, and at which value."""
    control = document["control"]
    end = "." if control["rejected"] else ", so that nothing is decided."
    word = "is rejected" if control["rejected"] else "is not rejected"
    return f"The control ({control['description']}) {word} at {brief(control['measured'], 3)}{end}"


def _subject(document: Mapping[str, Any]) -> tuple[str, bool]:
    """Return what a check's title says that it is about, and whether that is more than one statement."""
    head, colon, _ = str(document["title"]).partition(":")
    if document["paper"] == "own":
        return str(document["check"]).rpartition("/")[2], False
    if document["origin"] == "icl" or not colon:
        own = "This project's statement" if document["origin"] == "icl" else "Statement"
        return f"{own} {document['check']}", False
    if re.match(_NUMBERED, head):
        return head, bool(re.match(r"\w+s ", head))
    return f"The statement of {head[0].lower()}{head[1:]}", False


def _where(document: Mapping[str, Any], changed: Sequence[str]) -> str:
    """Return the settings as a part of a sentence: " at d = 8, n = 3"."""
    settings = {**document["settings"], **document.get("law", {})}
    weights = settings.pop("weights", None)
    of_law = document.get("law", settings) if weights is not None else settings
    names = [
        *(name for name in _ALWAYS if name in of_law),
        *(name for name in changed if name not in _ALWAYS),
    ]
    given = {entry["key"].removeprefix("check."): entry for entry in document.get("inputs", [])}
    letters = _LETTERS | _LETTERS_OF.get(str(document.get("paper")), {})
    parts = [
        _setting(name, letters.get(name, name.replace("_", " ")), settings[name], given)
        for name in dict.fromkeys(names)
        if settings.get(name) is not None
    ]
    whose = "" if weights is None else f" for {_name_of_weights(weights, given)}"
    return whose + (f" at {', '.join(parts)}" if parts else "")


def _name_of_weights(weights: Any, given: Mapping[str, Any]) -> str:
    if "weights" not in given:
        return f"the weights of {weights}"
    file = given["weights"]
    parts = Path(file["path"]).parts
    name = parts[-1] if parts[-1] != "weights.npz" else "/".join(parts[-4:-1])
    return f"the weights of {name} (sha256 {file['sha256'][:8]})"


def _setting(name: str, letter: str, value: Any, given: Mapping[str, Any]) -> str:
    """Return one setting in the paper's letters."""
    if name in given:
        file = given[name]
        shape = " x ".join(map(str, file["shape"]))
        return f"{letter} from {Path(file['path']).name} ({shape}, sha256 {file['sha256'][:8]})"
    if name == "setting":
        return f"setting ({value})"
    if name == "eigenvalues":
        return f"{letter} with eigenvalues {brief(value)}"
    if isinstance(value, list) and value:
        if isinstance(value[0], list) and len(value) > _SMALL:
            return f"{letter} as given ({len(value)} x {len(value[0])})"
        if name in ("context", "contexts") and len(set(value)) == 1:
            return f"{letter} = {value[0]}"
        if name == "contexts":
            return f"{letter} from {value[0]} to {value[-1]}"
    return f"{letter} = {brief(value)}"


def _evidence(document: Mapping[str, Any]) -> str:
    """Return the measurement that decides, in words: what is measured, its value, kind and bound."""
    compared = relation(document["measured"], document["bound"])
    meaning = (document.get("meanings") or {}).get(compared.name) or compared.name.replace("_", " ")
    kind = kind_in_words(document, compared.name)
    words = {"<": "below", ">": "above", "≈": "against"}
    if document["bound"].get("direction") == "true":
        told = {True: "true", False: "false"}.get(compared.value, "neither proved nor refuted")
        return f"{meaning}: {told}"
    if compared.sign == "=":
        comma = "," if "," in meaning else ""
        return f"{meaning}{comma} is {brief(compared.value, 3)}{f' ({kind})' if kind else ''}"
    value, limit = distinct(compared.value, compared.bound)
    # Its first clause: a comma within brackets ends none.
    source = re.split(r"[,;:] (?![^(\[]*[)\]])", document["bound"]["source"])[0]
    comma = "," if "," in meaning else ""
    measured = f"{meaning}{comma} is {value}{f' ({kind})' if kind else ''}"
    if not isinstance(compared.value, int | float) or isinstance(compared.value, bool):
        return f"{measured}; its bound is {limit}{source and f' ({source})'}"
    return f"{measured}, {words.get(compared.sign, 'equal to')} {limit}{source and f' ({source})'}"
