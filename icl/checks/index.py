"""The index of statements that lists, docs and the report read: `python -m icl.checks.index` writes it
again."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import icl.checks
from icl.checks.statement import Statement

PATH = Path(__file__).with_name("index.json")


def statements() -> Iterator[tuple[str, type[Statement]]]:
    """Yield id and class of every statement: one a module, the id is its paper and name."""
    for found in sorted(
        pkgutil.walk_packages(icl.checks.__path__, "icl.checks."), key=lambda module: module.name
    ):
        name = found.name.split(".")[2:]
        if len(name) != 2 or found.ispkg:
            continue
        for value in vars(importlib.import_module(found.name)).values():
            is_one = isinstance(value, type) and issubclass(value, Statement) and value.claim
            if is_one and value.__module__ == found.name:
                yield "/".join(name), value


def index() -> dict[str, dict[str, str]]:
    texts = ("paper", "title", "formula", "quote", "law", "claim")
    return {
        id: {name: getattr(cls, name) for name in texts}
        | {"origin": cls.origin or cls.paper, "reference": cls.where}
        for id, cls in statements()
    }


def written() -> str:
    return json.dumps(index(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
