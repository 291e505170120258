"""Keeps keys and passwords out of what is written: one rule for records, tables, messages and W&B.

A name is a secret's by its words: `OPENAI_KEY`, `auth_token`, `db.password`. What such a key of a config
holds is hidden; the value of such an environment variable, and a password in ~/.netrc, wherever they stand.
"""

import contextlib
import netrc
import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "<redacted>"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = re.compile(  # in the words of a name: `token_width` and `tokens` are this field's own
    r"\b(?:password|passwd|passphrase|secret|credentials|apikey|authorization|cookie)\b"
    r"|\b(?:token|auth|pat)$| (?:key|pass|pwd)$"
)
_WORDS = "(?:token|auth|pat|key|pass|pwd)"  # anywhere in the name of a variable, if it has several
_VARIABLE = re.compile(rf"{_SECRET.pattern}|\b{_WORDS} | {_WORDS}\b")
_ADDRESSES = re.compile(r"\b(?:url|uri|dsn|proxy)\b")  # a variable so called is a secret where it holds one
_SETTINGS = (  # key=value, and {key: value}
    re.compile(r"([\w.-]+)(=)('[^']*'|\"[^\"]*\"|\S+)"),
    re.compile(r"(?<=[{,])(\s*[\"']?[\w.-]+[\"']?)(\s*:\s*)('[^']*'|\"[^\"]*\"|[^,}\s]+)"),
)
_ADDRESS = re.compile(r"""([a-z][a-z0-9+.-]*://(?:[^/\s:@'"]*:(?=[^/\s'"]+@))?)[^/\s'"]+@""", re.IGNORECASE)
# What W&B, Hugging Face, GitHub and others give out begins so; a hook's address is a key itself.
_TOKEN = re.compile(
    r"\b(?:wandb_v\d+_|hf_|gh[pousr]_|github_pat_|glpat-|sk-|xapp-|xox[a-z]-|npm_|pypi-)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON Web Token: header, payload, signature
    r"|(?<=hooks\.slack\.com/services/)\S+|(?<=discord\.com/api/webhooks/)\S+"
)


def redact(document: Any) -> Any:
    """Return a copy with secrets hidden: values of keys that name one, also as `key=value` in a text,
    passwords in addresses, what looks like a service's token, and values of variables and of ~/.netrc."""
    hidden = [
        value
        for name, value in os.environ.items()
        if _VARIABLE.search(words := _words(name)) or ("@" in value and _ADDRESSES.search(words))
    ]
    with contextlib.suppress(OSError, netrc.NetrcParseError):
        hidden += [entry[2] or "" for entry in netrc.netrc(os.environ.get("NETRC")).hosts.values()]
    keys = {one for one in hidden if re.match(r".{20}|(?=.*\d).{8}", one)}  # no word that configs have
    return _redact(document, sorted(keys, key=len, reverse=True))


def _words(name: str) -> str:
    return " ".join(_WORD.findall(name.rpartition(".")[2])).lower()


def _redact(document: Any, values: list[str]) -> Any:
    if isinstance(document, Mapping):
        return {
            key: HIDDEN if _SECRET.search(_words(str(key))) and _may_be(entry) else _redact(entry, values)
            for key, entry in document.items()
        }
    if isinstance(document, list | tuple):
        return [_redact(entry, values) for entry in document]
    if isinstance(document, str):
        for value in values:
            document = document.replace(value, HIDDEN)
        for setting in _SETTINGS:
            document = setting.sub(
                lambda m: m[1] + m[2] + HIDDEN if _SECRET.search(_words(m[1])) else m[0], document
            )
        document = _TOKEN.sub(HIDDEN, _ADDRESS.sub(rf"\1{HIDDEN}@", document))
    return document


def _may_be(entry: Any) -> bool:
    """Return whether a value may be a secret; measurements, as of a matrix called key, are none."""
    if isinstance(entry, Mapping | list | tuple):
        return any(map(_may_be, entry.values() if isinstance(entry, Mapping) else entry))
    return entry not in (None, "") and not isinstance(entry, bool | float)
