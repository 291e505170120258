"""`icl clean`: shows what is failed, stale or orphaned and how large it is, then removes it; or one run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icl.cli.output import emit
from icl.config.search_path import ConfigDirs
from icl.errors import InputError, one_of
from icl.jobs.exit_codes import OK

if TYPE_CHECKING:
    from icl.runs.clean import Garbage


def clean_command(verb: str, args: Sequence[str]) -> int:
    from icl.runs.clean import find_garbage, remove, sizes

    settings = {"format": "text", "paths.outputs": ConfigDirs().default_outputs()}
    settings |= {"yes": "false", "run": ""}
    for arg in args:
        key, given, value = arg.partition("=")
        if arg in ("--help", "-h"):
            print("usage: icl clean [run=A] [yes=true] [format=text|json] [paths.outputs=DIR]")
            print("run=A removes one run and nothing else: its folder, or the beginning of its fingerprint")
            return OK
        if not given or key not in settings:
            raise InputError(f"{arg}: icl clean takes run=, yes=true, format= and paths.outputs=")
        settings[key] = value.strip("'\"")
        if not settings[key]:
            raise InputError(f"{arg}: must have a value")
    one_of("format", settings["format"], ("text", "json"))
    one_of("yes", settings["yes"], ("true", "false"))
    outputs = Path(settings["paths.outputs"]).absolute()
    garbage = [_run(outputs, settings["run"])] if settings["run"] else find_garbage(outputs)
    stream = sys.stderr if settings["format"] == "json" else sys.stdout
    for entry in garbage:
        print(
            f"{size_in_words(entry.bytes):>9}  {entry.path.relative_to(outputs)}  ({entry.why})", file=stream
        )
    found = sizes(outputs)
    total, kinds = sum(entry.bytes for entry in garbage), dict.fromkeys(found, 0)
    for entry in garbage:
        kinds[entry.path.relative_to(outputs).parts[0]] += entry.bytes
    for kind, size in found.items() if not settings["run"] else ():
        print(f"{size_in_words(kinds[kind]):>9}  of {size_in_words(size)} in {kind}", file=stream)
    print(f"{size_in_words(total):>9}  in all" if garbage else "nothing to clean", file=stream)
    removed = remove(outputs, garbage) if garbage and (settings["yes"] == "true" or _agreed(total)) else []
    document = {
        "found": [{"path": entry.path, "why": entry.why, "bytes": entry.bytes} for entry in garbage],
        "removed": removed,
        "bytes": total,
    }
    last = f"removed {len(removed)} of {len(garbage)}\n" if garbage else ""
    emit(document, lambda: print(last, end=""), settings["format"])
    return OK


def _run(outputs: Path, given: str) -> Garbage:
    """Return the one run that is to be removed."""
    from icl.jobs.stored.run_list import find_run
    from icl.runs.clean import garbage_at

    found = find_run(outputs, given, "run")
    if found.status == "running":
        raise InputError(f"run={given}: is being made; stop the command that makes it first")
    return garbage_at(found.path, f"{found.name}, {found.status}, {found.date[:10]}")


def _agreed(total: int) -> bool:
    if not sys.stdin.isatty():
        print("nothing removed: pass yes=true", file=sys.stderr)
        return False
    print(f"remove {size_in_words(total)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def size_in_words(count: float) -> str:
    """Return a number of bytes as text: 13 kB."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
