"""Keeps keys and passwords out of what is written: one rule for records, tables, messages and W&B.

The value of an environment variable that is named like a secret is hidden wherever it stands, unless the
source or the configs of icl contain it: what is published is no secret, and a record without it could not be
read back.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HIDDEN = "<redacted>"
_NAMES = (
    r"(?:(?:api|access|private|secret)[_-]?key"
    r"|(?<!be)token|secret|password|passwd|passphrase|credentials?"
    r"|(?<=[_-])(?:pass|pwd|auth))"
)
# The name must end there: `auth_token` is a secret, `token_width` and `tokens` are this field's own words.
_SECRET = re.compile(rf"{_NAMES}$", re.IGNORECASE)
_OVERRIDE = re.compile(rf"({_NAMES}=)('[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
_WITHIN = re.compile(rf"([{{,][\w.-]*{_NAMES}:)([^,}}\s]+)", re.IGNORECASE)  # {token:...}, as Hydra writes it
_ADDRESS = re.compile(r"""([a-z][a-z0-9+.-]*://[^/\s:@'"]*:)[^/\s'"]+@""", re.IGNORECASE)
# What W&B, Hugging Face, GitHub and others give out begins so.
_TOKEN = re.compile(
    r"\b(?:wandb_v\d+_|hf_|gh[pousr]_|github_pat_|glpat-|sk-|xapp-|xox[a-z]-|npm_|pypi-)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON Web Token: header, payload, signature
)
# Addresses that are keys themselves: whoever has one may post there.
_HOOK = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)[^\s'\"]+",
    re.IGNORECASE,
)
_CLASSES = ("_target_", "code")  # keys of names that Python has imported: no secrets
_SHORTEST = 8  # a shorter environment value would hide innocent words


def redact(document: Any) -> Any:
    """Return a copy with secrets hidden: values of keys that name one, `key=value` strings that set one,
    passwords in addresses (`scheme://user:password@host`), what looks like a service's token, and every
    occurrence of the value of an environment variable that holds one, such as WANDB_API_KEY."""
    values = [os.environ[name] for name in map(os.fsdecode, os.environb) if _names_secret(name)]
    hidden = (value for value in values if len(value) >= _SHORTEST and not _is_published(value))
    return _redact(document, sorted(hidden, key=len, reverse=True))


def holds_secret(text: str) -> bool:
    """Return whether `redact` would hide a part of the text."""
    return bool(redact(text) != text)


@functools.lru_cache(maxsize=64)
def _is_published(value: str) -> bool:
    """Return whether the source of icl, its configs or their names contain the value."""
    return any(value.encode() in text for text in _published())


@functools.cache
def _published() -> tuple[bytes, ...]:
    package = Path(__file__).parent
    places = [(package, "*.py"), (package / "conf", "*.yaml"), (package.with_name("conf"), "*.yaml")]
    found = [(path, top) for top, pattern in places for path in top.rglob(pattern)]
    names = (path.relative_to(top).with_suffix("").as_posix() for path, top in found)
    return "\n".join(names).encode(), *(path.read_bytes() for path, _ in found)


@functools.lru_cache(maxsize=1024)
def _names_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def _redact(document: Any, values: list[str]) -> Any:
    if isinstance(document, Mapping):
        return {
            key: HIDDEN
            if _SECRET.search(str(key)) and _says_something(entry)
            else _redact(entry, [] if key in _CLASSES else values)
            for key, entry in document.items()
        }
    if isinstance(document, list | tuple):
        return [_redact(entry, values) for entry in document]
    if isinstance(document, str):
        for value in values:
            document = document.replace(value, HIDDEN)
        for setting in (_OVERRIDE, _WITHIN):
            document = setting.sub(rf"\1{HIDDEN}", document)
        document = _HOOK.sub(rf"\1{HIDDEN}", _ADDRESS.sub(rf"\1{HIDDEN}@", document))
        return _TOKEN.sub(HIDDEN, document)
    return document


def _says_something(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, bool) and entry != ""
