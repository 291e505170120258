"""Composed configs, kept between processes: each takes Hydra a tenth of a second, and a reproduce has sixty.

What is composed follows from the config files, the overrides, the variables that a file names as in
${oc.env:WANDB_MODE,auto}, and from Hydra's code and ours: under a digest of these it is kept. Nothing is kept
where a file asks for anything else, such as the time, and no config that holds a secret.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hydra
import omegaconf

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.runs import atomic
from icl.runs.code import code_digest
from icl.runs.documents import read_record, to_json, write_record
from icl.runs.redact import redact

PLACE = "cache/composed.json"
_OF_THE_CONFIG = ("at", "oc.select")  # resolvers
_ASKS = re.compile(r"\$\{\s*(?:(\$)|([\w.]+)\s*:\s*(\w*))|searchpath")  # a resolver, or for other files


@dataclass
class ComposeCache:
    """icl.config.compose.compose with a cache, `kept`, that needs no Hydra."""

    kept: dict[str, Any]

    def __call__(self, configs: ConfigDirs, verb: str, overrides: Sequence[str]) -> Composed:
        asked = " ".join([verb, *overrides])
        if asked in self.kept:
            settings, choices = self.kept[asked]
            return Composed(settings, choices)
        composed = compose(configs, verb, overrides)
        content = [composed.settings, dict(composed.choices)]
        is_plain = to_json(content) == content == redact(content)  # as it is read again; no secret
        if (
            "${" not in asked
            and not composed.multirun
            and not composed.left_out
            and not composed.may_not_fit
            and is_plain
        ):
            self.kept[asked] = content
        return composed


@contextlib.contextmanager
def reusing_composed(session: Session) -> Iterator[ComposeCache]:
    """Load the cache of composed configs, and save it again if it grew."""
    path, mark = session.outputs / PLACE, _cache_key(session.configs)
    found = read_record(path) or {}
    memory = ComposeCache(
        dict(found.get("kept", {})) if mark is not None and found.get("mark") == mark else {}
    )
    before = len(memory.kept)
    yield memory
    if mark is not None and len(memory.kept) > before:
        with atomic.writing(session.outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_record(path, {"mark": mark, "kept": memory.kept})


def _cache_key(configs: ConfigDirs) -> str | None:
    variables: dict[str, str | None] = {}
    for path, _ in configs.files():
        for nested, resolver, argument in _ASKS.findall(path.read_text(encoding="utf-8")):
            if resolver == "oc.env" and argument:
                variables[argument] = os.environ.get(argument)
            elif nested or resolver not in _OF_THE_CONFIG:
                return None
    about = [configs.digest(), variables, code_digest(["icl.config.compose"])]
    text = json.dumps([*about, hydra.__version__, omegaconf.__version__], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
