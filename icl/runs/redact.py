"""Keeps keys and passwords out of what is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "<redacted>"
_NAMES = (
    r"(?:(?:api|access|private|secret)[_-]?key"
    r"|(?:^|(?<=[^a-z]))(?:token|secret|password|passwd|passphrase|credentials?)"
    r"|(?-i:(?<=[a-z])(?:Token|Secret|Password)))"
)
# The name must end there: `auth_token` is a secret, `token_width` and `tokens` are this field's own words.
_SECRET = re.compile(rf"{_NAMES}$", re.IGNORECASE)
_OVERRIDE = re.compile(rf"({_NAMES}=)('[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
_WITHIN = re.compile(rf"([{{,][\w.-]*{_NAMES}:)([^,}}\s]+)", re.IGNORECASE)  # {token:...}, as Hydra writes it
_ADDRESS = re.compile(r"""([a-z][a-z0-9+.-]*://[^/\s:@'"]*:)[^/\s'"]+@""", re.IGNORECASE)
# What W&B, Hugging Face, GitHub and others give out begins so.
_TOKEN = re.compile(r"\b(?:wandb_v\d+_|hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abp]-)[\w-]{16,}")
_SHORTEST = 8  # a shorter environment value would hide innocent words


def redact(document: Any) -> Any:
    """Return a copy with secrets hidden: values of keys that name one, `key=value` strings that set one,
    passwords in addresses (`scheme://user:password@host`), what begins as a service's tokens do, and every
    occurrence of the value of an environment variable that holds one, such as WANDB_API_KEY."""
    values = [value for name, value in os.environ.items() if _SECRET.search(name) and len(value) >= _SHORTEST]
    return _redact(document, sorted(values, key=len, reverse=True))


def _redact(document: Any, values: list[str]) -> Any:
    if isinstance(document, Mapping):
        return {
            key: HIDDEN if _SECRET.search(str(key)) and _says_something(entry) else _redact(entry, values)
            for key, entry in document.items()
        }
    if isinstance(document, list | tuple):
        return [_redact(entry, values) for entry in document]
    if isinstance(document, str):
        for value in values:
            document = document.replace(value, HIDDEN)
        for setting in (_OVERRIDE, _WITHIN):
            document = setting.sub(rf"\1{HIDDEN}", document)
        return _TOKEN.sub(HIDDEN, _ADDRESS.sub(rf"\1{HIDDEN}@", document))
    return document


def _says_something(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, bool) and entry != ""
