"""`icl clean`: shows what is failed, stale or orphaned and how large it is; yes=true removes it."""

import sys
from collections.abc import Sequence

from rich.filesize import decimal

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK


def command(args: Sequence[str]) -> int:
    from icl.runs.clean import find_removable, remove

    asked = read_arguments(args, yes="false")
    if asked.others:
        raise InputError(f"{asked.others[0]}: icl clean takes yes=true, format= and paths.outputs=")
    removable = find_removable(asked.outputs)
    stream = sys.stderr if asked.settings["format"] == "json" else sys.stdout
    for entry in removable:
        print(f"{decimal(entry.bytes):>9}  {entry.path}  ({entry.why})", file=stream)
    total = sum(entry.bytes for entry in removable)
    if removable:
        print(f"{decimal(total):>9}  in all", file=stream)
    agreed = asked.settings["yes"] == "true"
    removed = remove(asked.outputs, removable) if agreed else []
    document = {"found": [entry._asdict() for entry in removable], "removed": removed, "bytes": total}
    said = f"removed {len(removed)} of {len(removable)}" if agreed else "nothing removed: pass yes=true"
    emit(document, lambda: print(said if removable else "nothing to clean"), asked.settings["format"])
    return OK
