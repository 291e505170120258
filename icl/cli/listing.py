"""`icl list`: what there is and what is done here, without Hydra."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.jobs.exit_codes import OK
from icl.jobs.stored.catalog import listing
from icl.verdicts import VERDICTS, joint

USAGE = "usage: icl list [format=text|json] [paths.outputs=DIR] [--config-dir DIR]\n"
LEGEND = """\u2713 holds   \u2717 fails   ? undecided   \u00b7 nothing stored here   x trained here
[own]: a statement of this project that the paper does not make"""
GLYPHS = dict(zip(VERDICTS, "\u2713\u2717?", strict=True))


def list_command(verb: str, args: Sequence[str]) -> int:
    asked = read_arguments(USAGE, args)
    asked.refuse_others("icl list takes format=, paths.outputs= and --config-dir")
    document = listing(asked.outputs, asked.configs)
    emit(document, lambda: _show(document), asked.settings["format"])
    return OK


def _show(document: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print one line each: the verdict, the id and the title."""
    room = shutil.get_terminal_size().columns
    print(LEGEND)
    for name, items in document.items():
        print(f"\n{name} ({sum(item['done'] for item in items)} of {len(items)} done here)")
        for _, found in groupby(items, itemgetter("paper")):  # columns of a paper have their own widths
            of_paper = list(found)
            width = max(len(item["id"]) for item in of_paper)
            for item in of_paper:
                line = f"  {_mark(item)} {item['id']:<{width}}  {_title(item)}"
                print(line if len(line) <= room else f"{line[: room - 3].rsplit(' ', 1)[0].rstrip()} ..")


def _mark(item: Mapping[str, Any]) -> str:
    if not item["verdicts"]:
        return "x" if item["done"] else "\u00b7"
    return GLYPHS[joint(item["verdicts"])]


def _title(item: Mapping[str, Any]) -> str:
    """Return the title, and how many of a figure's claims hold."""
    verdicts, own = item["verdicts"], "[own] " if item["origin"] == "icl" else ""
    held = f" ({verdicts.count('holds')} of {len(verdicts)} hold)" if len(verdicts) > 1 else ""
    return f"{own}{item['title']}{held}"
