"""Keeps keys and passwords out of what is written: one rule for records, tables, messages and W&B.

A name is a secret's by its words: `OPENAI_KEY`, `auth_token`, `db.password`. What such a key of a config
holds is hidden; the value of such an environment variable, and a password in ~/.netrc, wherever they stand.
"""

from __future__ import annotations

import functools
import netrc
import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "<redacted>"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ANYWHERE = {"password", "passwd", "passphrase", "secret", "credentials", "apikey", "authorization", "cookie"}
_LAST = {"token", "auth", "pat"}  # `token_width` and `tokens` are this field's own words
_LAST_OF_SEVERAL = {"key", "pass", "pwd"}
_ADDRESSES = {"url", "uri", "dsn", "proxy"}  # of an environment variable: a secret where it holds one
_SETTING = re.compile(r"([\w.-]+)(=)('[^']*'|\"[^\"]*\"|\S+)")
_ENTRY = re.compile(r"(?<=[{,])(\s*[\"']?[\w.-]+[\"']?)(\s*:\s*)('[^']*'|\"[^\"]*\"|[^,}\s]+)")
_ADDRESS = re.compile(r"""([a-z][a-z0-9+.-]*://(?:[^/\s:@'"]*:(?=[^/\s'"]+@))?)[^/\s'"]+@""", re.IGNORECASE)
# What W&B, Hugging Face, GitHub and others give out begins so; a hook's address is a key itself.
_TOKEN = re.compile(
    r"\b(?:wandb_v\d+_|hf_|gh[pousr]_|github_pat_|glpat-|sk-|xapp-|xox[a-z]-|npm_|pypi-)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON Web Token: header, payload, signature
    r"|(?<=hooks\.slack\.com/services/)\S+|(?<=discord\.com/api/webhooks/)\S+"
)


def redact(document: Any) -> Any:
    """Return a copy with secrets hidden: values of keys that name one, settings `key=value` of such a key,
    passwords in addresses (`scheme://user:password@host`), what looks like a service's token, and the values
    of the environment and of ~/.netrc, such as W&B's key."""
    named = [value for name, value in os.environ.items() if _is_secret_variable(name, value)]
    hidden = {value for value in (*named, *_passwords_of_netrc()) if _looks_like_a_key(value)}
    return _redact(document, sorted(hidden, key=len, reverse=True))


def holds_secret(text: str) -> bool:
    """Return whether `redact` would hide a part of the text."""
    return bool(redact(text) != text)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


@functools.lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    words = _words(name.rpartition(".")[2])
    last = words[-1] if words else ""
    return bool(_ANYWHERE & {*words}) or last in _LAST or (last in _LAST_OF_SEVERAL and len(words) > 1)


def _is_secret_variable(name: str, value: str) -> bool:
    words = {*_words(name)}
    several = len(words) > 1 and bool(words & (_LAST | _LAST_OF_SEVERAL))
    return several or _names_secret(name) or (bool(words & _ADDRESSES) and "@" in value)


def _looks_like_a_key(value: str) -> bool:
    """Return whether a value is none of the words that configs are made of."""
    return len(value) >= 8 and (len(value) >= 20 or any(letter.isdigit() for letter in value))


def _passwords_of_netrc() -> list[str]:
    try:
        return [entry[2] or "" for entry in netrc.netrc(os.environ.get("NETRC")).hosts.values()]
    except (OSError, netrc.NetrcParseError):
        return []


def _redact(document: Any, values: list[str]) -> Any:
    if isinstance(document, Mapping):
        return {
            key: HIDDEN if _names_secret(str(key)) and _may_be_secret(entry) else _redact(entry, values)
            for key, entry in document.items()
        }
    if isinstance(document, list | tuple):
        return [_redact(entry, values) for entry in document]
    return _redact_text(document, values) if isinstance(document, str) else document


def _redact_text(text: str, values: list[str]) -> str:
    for value in values:
        text = text.replace(value, HIDDEN)
    for setting in (_SETTING, _ENTRY):
        text = setting.sub(_without_secret, text)
    return _TOKEN.sub(HIDDEN, _ADDRESS.sub(rf"\1{HIDDEN}@", text))


def _without_secret(setting: re.Match[str]) -> str:
    name, sign, _ = setting.groups()
    return f"{name}{sign}{HIDDEN}" if _names_secret(name.strip("\"' ")) else setting[0]


def _may_be_secret(entry: Any) -> bool:
    """Return whether a value may be a secret; measurements, as of a matrix called key, are none."""
    if isinstance(entry, Mapping):
        return any(map(_may_be_secret, entry.values()))
    if isinstance(entry, list | tuple):
        return any(map(_may_be_secret, entry))
    return entry is not None and not isinstance(entry, bool | float) and entry != ""
