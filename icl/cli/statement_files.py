"""`icl check FILE.py` decides the statements of a user's file; `icl check new` prints one to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from icl.errors import InputError, one_of, whole
from icl.jobs.exit_codes import OK, exit_code

OWN = {"format": "text", "tries": None, "seed": 0, "verbose": False}


def is_meant(args: Sequence[str]) -> bool:
    """Return whether `icl check ARGS` is about a file."""
    return any(arg == "new" or (arg.endswith(".py") and "=" not in arg) for arg in args)


def command(args: Sequence[str]) -> int:
    if "new" in args:
        if list(args) != ["new"]:
            raise InputError("icl check new: takes nothing else; icl check new > mine.py writes a file")
        print((files("icl.checks") / "template.py").read_text(encoding="utf-8"), end="")
        return OK
    from icl.checks.files import statements_of, with_settings
    from icl.cli import show
    from icl.cli.output import emit

    paths = [arg for arg in args if "=" not in arg]
    if len(paths) != 1:
        raise InputError(f"{' '.join(paths)}: one file at a time, and KEY=VALUE")
    path, typed = Path(paths[0]), _parsed([arg for arg in args if "=" in arg])
    own = {key: typed.pop(key, value) for key, value in OWN.items()}
    form, seed = one_of("format", own["format"], ("text", "json")), whole("seed", own["seed"], 0)
    settings = {key.removeprefix("check."): value for key, value in typed.items()}
    statements = with_settings(statements_of(path), settings, path)
    tries = None if own["tries"] is None else whole("tries", own["tries"], 0)
    documents = [_document(one, path, tries, seed) for one in statements]
    document = documents[0] if len(documents) == 1 else {"checks": documents}

    def shown() -> None:
        for one in documents:
            show.check(one, verbose=own["verbose"] is True)

    emit(document, shown, form)
    return exit_code(document)


def _document(statement: Any, path: Path, tries: int | None, seed: int) -> dict[str, Any]:
    from icl.checks.files import line_of
    from icl.checks.tries import settings_of
    from icl.jobs.requests.check import decided, presented
    from icl.jobs.stored.catalog import CatalogEntry

    name = type(statement).__name__
    entry = CatalogEntry(name, statement.paper, statement.where, title=statement.title or name)
    try:
        document = decided(
            name, statement, settings_of(statement), statement.expected(), tries, seed, str(path)
        )
    except InputError:
        raise
    except Exception as error:
        where = f"{path}{line_of(error, path)}, {name}"
        raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error
    return presented(document | {"paper": statement.paper}, entry)


def _parsed(overrides: Sequence[str]) -> dict[str, Any]:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return {o.key_or_group: o.value() for o in OverridesParser.create().parse_overrides([*overrides])}
    except HydraException as error:
        raise InputError(str(error)) from None
