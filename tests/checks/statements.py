"""Rows of the battery over all statements; each paper's lie in tests/checks/PAPER/statements.py."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from icl.checks.index import statements

ALL = dict(statements())
PAPERS = sorted({id.partition("/")[0] for id in ALL})


@dataclass(frozen=True)
class Odd:
    """Settings at which a statement has this verdict, which is also the expected one. `exact` are numbers."""

    id: str
    settings: Mapping[str, Any]
    verdict: str = "holds"
    exact: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mutant:
    """A wrong line: `old` in the file of a statement, written `new`, gives this verdict."""

    id: str
    old: str
    new: str
    verdict: str = "fails"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def statement(self) -> Any:
        """Return the statement of the changed file."""
        right = ALL[self.id]
        source = inspect.getsource(sys.modules[right.__module__])
        assert source.count(self.old) == 1, f"{self.id} has {source.count(self.old)} times {self.old}"
        changed = ModuleType(right.__module__)
        code = compile(source.replace(self.old, self.new), f"{self.id}, {self.new}", "exec")
        exec(code, vars(changed))
        return getattr(changed, right.__name__)(**self.settings)


def rows(name: str) -> list[Any]:
    return [
        row
        for paper in PAPERS
        for row in getattr(importlib.import_module(f"tests.checks.{paper}.statements"), name)
    ]
