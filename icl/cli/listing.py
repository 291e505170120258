"""`icl list`: what there is and what is done here, without Hydra."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from icl.catalog import listing
from icl.cli.output import emit
from icl.cli.quick import Arguments, read_arguments
from icl.errors import InputError, nearest
from icl.jobs.exit_codes import OK
from icl.verdicts import SIGNS, joint_sign, short, totals

LEGEND = f"""{"   ".join(f"{mark} {meaning}" for meaning, mark in SIGNS.items())}
+ trained   \u00b7 nothing stored here   [own] not a statement of the paper
S: stacks whose layers are multiples of the inverse covariance (Theorems 3, 4)"""

Listing = Mapping[str, Sequence[Mapping[str, Any]]]


def command(args: Sequence[str]) -> int:
    asked = read_arguments(args)
    document: Listing = listing(asked.outputs, asked.configs)
    if asked.others:
        document = _named(document, asked)
    emit(document, lambda: _show(document, "/" in str(asked.others)), asked.settings["format"])
    return OK


def _named(document: Listing, asked: Arguments) -> Listing:
    """Return what has one of these names, with its results, or is of one of these papers or kinds."""
    names = [one.rpartition("=")[2] for one in asked.others]
    of_items = [str(item[key]) for items in document.values() for item in items for key in ("id", "paper")]
    known = [*document, *of_items]
    for name in names:
        if name not in known:
            raise InputError(f"{name}: no such check, experiment, figure or paper{nearest(name, known)}")
    return {
        kind: [item for item in items if {kind, item["id"], item["paper"]} & {*names}]
        for kind, items in document.items()
    }


def _show(document: Listing, whole: bool) -> None:
    """Print one line each: the verdict, the id and the title; of a `whole` check what it states, and its
    results."""
    room = shutil.get_terminal_size().columns
    print(LEGEND)
    for name, items in document.items():
        if items:
            print(f"\n{name} ({sum(item['done'] for item in items)} of {len(items)} done here)")
        for _, found in groupby(items, itemgetter("paper")):  # columns of a paper have their own widths
            of_paper = list(found)
            width = max(len(item["id"]) for item in of_paper)
            for item in of_paper:
                plain = "+" if item["done"] else "\u00b7"
                mark = joint_sign(item["claims"]) if item["claims"] else plain
                line = f"  {mark} {item['id']:<{width}}  {_title(item)}"
                print(line if len(line) <= room else f"{line[: room - 3].rsplit(' ', 1)[0].rstrip()} ..")
                if whole and "results" in item:
                    print("", textwrap.fill(f"{item['reference']}: {item['statement']}", room), "", sep="\n")
                for one in item.get("results", ()) if whole else ():
                    print(f"  {short(one)}  {one['typed'] or 'as shipped'}  {one['record']}")


def _title(item: Mapping[str, Any]) -> str:
    """Return the title, how a figure's claims are decided, and of how many settings there is a result."""
    own, claims = "[own] " if item["origin"] == "icl" else "", item["claims"]
    more = [totals(claims)] if len(claims) > 1 else []
    more += [f"at {count} settings"] if (count := len(item.get("results", ()))) > 1 else []
    return (f"({', '.join(more)}) " if more else "") + f"{own}{item['title']}"
