"""`icl check FILE.py` decides the statements of a user's file, `icl check PACKAGE/NAME` one of an installed
package; `icl check new` prints a file to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

from icl.cli import show
from icl.cli.output import emit
from icl.config.compose import compose, input_errors, values_of
from icl.config.search_path import ConfigDirs
from icl.config.session import COMMON, parse_session
from icl.errors import InputError
from icl.jobs.exit_codes import OK, exit_code
from icl.jobs.requests.check import OWN, of_place
from icl.jobs.requests.request import run_request

_OURS = {*COMMON, *OWN} - {"check", "scale", "jobs"}  # every other key is a setting of a statement


def is_meant(args: Sequence[str]) -> bool:
    """Return whether `icl check ARGS` is about a file, or a package's statement."""
    names = [arg for arg in args if "=" not in arg]
    packages = entry_points(group="icl.statements").names if any("/" in name for name in names) else ()
    return any(n == "new" or n.endswith(".py") or n.partition("/")[0] in packages for n in names)


def command(args: Sequence[str], progress: Any) -> int:
    if "new" in args:
        if list(args) != ["new"]:
            raise InputError("icl check new: takes nothing else; icl check new > mine.py writes a file")
        print((files("icl.checks") / "template.py").read_text(encoding="utf-8"), end="")
        return OK
    names = [arg for arg in args if "=" not in arg]
    if len(names) != 1:
        raise InputError(f"{' '.join(names)}: one file at a time, and KEY=VALUE")
    given = [arg for arg in args if "=" in arg]
    ours = [arg for arg in given if arg.partition("=")[0].partition(".")[0].lstrip("+") in _OURS]
    composed = compose(configs := ConfigDirs.of(None), "check", ours)
    session = parse_session("check", OWN, composed, configs)
    with input_errors(configs, "check", ours):
        typed = values_of([arg for arg in given if arg not in ours])
    settings = {key.removeprefix("check."): value for key, value in typed.items()}
    asked = of_place(names[0], settings, composed.settings)
    with progress(session, f"check {names[0]}") as session:
        documents = [run_request(one, session) for one in asked]
    document = documents[0] if len(documents) == 1 else {"checks": documents}

    def shown() -> None:
        for one in documents:
            show.check(one)

    emit(document, shown, composed.settings["format"])
    return exit_code(document)
