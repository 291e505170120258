"""Titles, references and claims of statements, read without importing them."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any


def _read(name: str) -> Any:
    return json.loads((importlib.resources.files("icl") / "checks" / name).read_text(encoding="utf-8"))


@functools.cache
def index() -> dict[str, dict[str, str]]:
    """Return title, reference, claim and the like of every statement, by id: icl.checks.index writes it."""
    return dict(_read("index.json"))


@functools.cache
def joined() -> dict[str, str]:
    """Return the checks that are a part of another one: asking for one names the other."""
    return dict(_read("joined.json"))
