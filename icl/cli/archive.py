"""`icl archive` and `icl verify`: finished records as one folder with digests, and its verification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl.cli.clean import size_in_words
from icl.cli.output import emit
from icl.errors import InputError, one_of
from icl.jobs.exit_codes import OK

ARCHIVE_USAGE = """usage: icl archive FOLDER [only=[NAME,...]] [scale=smoke|laptop|paper] [unfinished=true]
                  [format=text|json] [paths.outputs=DIR]

Writes finished records as one folder that can be kept, published and drawn from: runs with their weights,
metrics and configs, the figures drawn from them with their claims, and verdicts of checks. README.md and
ro-crate-metadata.json (RO-Crate 1.1, with the SHA-256 of every file) describe it. Runs that a figure has
trained for itself are taken before the figure is finished; with unfinished=true so is the newest checkpoint
of a run that is not. Called again with the same FOLDER it adds what is finished by then.
only= takes papers, figures and checks. Each record keeps the commit it was made by.

examples:
  icl archive kept/ahn 'only=[ahn]' scale=paper
  icl archive kept/fig1 only=ahn/fig1
  icl figure figure=ahn/fig1 scale=paper from=kept/ahn
"""


def archive_command(verb: str, args: Sequence[str]) -> int:
    settings = {
        "format": "text", "paths.outputs": "outputs", "only": "", "scale": "laptop", "unfinished": "false",
    }  # fmt: skip
    folder = _read(verb, args, settings, ARCHIVE_USAGE, "a folder, such as icl archive kept/ahn")
    if folder is None:
        return OK
    from icl.config.search_path import ConfigDirs
    from icl.jobs.stored.archive import ArchiveRequest, write_archive

    one_of("unfinished", settings["unfinished"], ("true", "false"))
    outputs = Path(settings["paths.outputs"]).expanduser().absolute()
    request = ArchiveRequest(
        Path(folder).expanduser().absolute(),
        outputs,
        tuple(name for name in settings["only"].strip("[]").replace(" ", "").split(",") if name),
        settings["scale"],
        settings["unfinished"] == "true",
        ConfigDirs.of(None),
    )
    document = write_archive(request)
    emit(document, lambda: _show_archive(document), settings["format"])
    return OK


def _read(verb: str, args: Sequence[str], settings: dict[str, str], usage: str, wanted: str) -> str | None:
    """Read KEY=VALUE into `settings` and return the one path given; None where help was asked for."""
    if {"--help", "-h"} & set(args):
        print(usage, end="")
        return None
    named = []
    for arg in args:
        key, given, value = arg.partition("=")
        if given and key in settings:
            settings[key] = value.strip("'\"")
        elif given and "/" not in key:
            raise InputError(f"{arg}: icl {verb} takes {', '.join(f'{known}=' for known in settings)}")
        else:
            named.append(arg)
    if len(named) != 1 or not named[0]:
        raise InputError(f"{verb}: takes {wanted}")
    one_of("format", settings["format"], ("text", "json"))
    return named[0]


def _show_archive(document: dict[str, Any]) -> None:
    count, size = len(document["files"]), size_in_words(document["bytes"])
    print(f"{document['folder']}: {count} files, {size}, {len(document['new'])} records new")
    for name in document["new"]:
        print(f"  {name}")
    print(f"sha256 {document['sha256']}")
