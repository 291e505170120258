"""`icl archive`: copies of finished records."""

from collections.abc import Sequence
from pathlib import Path

from rich.filesize import decimal

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK
from icl.runs.archive import write_archive


def command(args: Sequence[str]) -> int:
    asked = read_arguments(args)
    if len(asked.others) != 1 or "=" in asked.others[0]:
        given = " ".join(["archive", *asked.others])
        raise InputError(f"{given}: takes one folder, such as icl archive kept")
    document = write_archive(Path(asked.others[0]).expanduser().absolute(), asked.outputs)
    size = decimal(document["bytes"])
    text = f"{document['folder']}: {len(document['files'])} files, {size}, {len(document['new'])} records new"
    emit(document, lambda: print(text), asked.settings["format"])
    return OK
