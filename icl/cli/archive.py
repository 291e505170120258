"""`icl archive`: finished records as a folder with digests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from icl.cli.clean import size_in_words
from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK

USAGE = """usage: icl archive FOLDER [format=text|json] [paths.outputs=DIR]

Copies finished records, in the layout of the outputs folder, with a SHA256SUMS: runs with weights, metrics
and configs, figures with arrays, pictures and claims, verdicts of checks. Called again it adds what is
finished by then.

examples:
  icl archive kept
  cd kept && sha256sum --check SHA256SUMS
  icl figure figure=ahn/fig1 scale=paper from=kept
"""


def archive_command(verb: str, args: Sequence[str]) -> int:
    asked = read_arguments(USAGE, args)
    if len(asked.others) != 1 or "=" in asked.others[0]:
        raise InputError("archive: takes a folder, such as icl archive kept, format= and paths.outputs=")
    from icl.jobs.stored.archive import write_archive

    document = write_archive(Path(asked.others[0]).expanduser().absolute(), asked.outputs)
    size = size_in_words(document["bytes"])
    text = f"{document['folder']}: {len(document['files'])} files, {size}, {len(document['new'])} records new"
    emit(document, lambda: print(text), asked.settings["format"])
    return OK
