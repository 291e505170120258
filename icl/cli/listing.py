"""`icl list`: what there is and what is done here, without Hydra."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from icl.config.search_path import SCALES, ConfigDirs
from icl.errors import InputError, one_of
from icl.jobs.stored.catalog import KINDS, Kind, StoredResult, claim_of, listing, stored_results, target_of
from icl.verdicts import VERDICTS, joint


def list_command(verb: str, args: Sequence[str]) -> int:
    settings, folder, rest = {"format": "text", "paths.outputs": ""}, None, list(args)
    while rest:
        arg = rest.pop(0)
        key, given, value = arg.partition("=")
        if arg in ("--help", "-h"):
            print("usage: icl list [format=text|json|schema] [paths.outputs=DIR] [--config-dir DIR]")
            return 0
        if key in ("--config-dir", "-cd"):
            folder = value if given else rest.pop(0) if rest else ""
        elif given and key in settings:
            settings[key] = value.strip("'\"")
        else:
            raise InputError(f"{arg}: icl list takes format=, paths.outputs= and --config-dir")
    one_of("format", settings["format"], ("text", "json", "schema"))
    if settings["format"] == "schema":
        from icl.cli.schema import schema

        print(json.dumps(schema(), indent=2))
        return 0
    configs = ConfigDirs.of(folder)
    outputs = Path(settings["paths.outputs"] or configs.default_outputs()).absolute()
    document = listing(outputs, configs)
    if settings["format"] == "json":
        print(json.dumps(document, indent=2))
    else:
        _show(document, outputs, configs)
    return 0


LEGEND = """\u2713 holds   \u2717 fails   ? undecided   \u00b7 nothing stored here   x trained here
[own]: a statement of this project that the paper does not make"""
GLYPHS = dict(zip(VERDICTS, "\u2713\u2717?", strict=True))
ROOM = 40  # columns from which on a claim stands behind the title


def _show(document: Mapping[str, Sequence[Mapping[str, Any]]], outputs: Path, configs: ConfigDirs) -> None:
    """Print one line each: the verdict, the id, the scale, the title, and the claim where there is room."""
    width = shutil.get_terminal_size().columns
    print(LEGEND)
    for kind, (name, items) in zip(KINDS, document.items(), strict=True):
        print(f"\n{name} ({sum(item['done'] for item in items)} of {len(items)} done here)")
        for _, of_paper in groupby(items, itemgetter("paper")):  # columns of a paper have their own widths
            _show_paper(kind, list(of_paper), outputs, configs, width)


def _show_paper(
    kind: Kind, items: Sequence[Mapping[str, Any]], outputs: Path, configs: ConfigDirs, width: int
) -> None:
    found = [stored_results(outputs, kind, item["id"], configs) for item in items]
    scales = [", ".join(map(_scale, one)) for one in found]
    titles = [f"{'[own] ' if item['origin'] == 'icl' else ''}{item['title']}" for item in items]
    rows = [
        [f"{_mark(one, done=item['done'])} {item['id']}", *([scale] if any(scales) else []), title]
        for item, one, scale, title in zip(items, found, scales, titles, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    has_room = kind.group == "check" and width >= sum(widths) + 2 * len(widths) + 2 + ROOM
    for item, row in zip(items, rows, strict=True):
        claim = claim_of(target_of(kind, item["id"], configs)) if has_room else ""
        cells = [f"{cell:<{length}}" for cell, length in zip(row, widths, strict=True)]
        line = f"  {'  '.join([*cells, claim])}".rstrip()
        print(line if len(line) <= width else f"{line[: width - 3].rsplit(' ', 1)[0].rstrip()} ..")


def _mark(found: Sequence[StoredResult], *, done: bool) -> str:
    verdicts = [verdict for one in found[-1:] for verdict in one.verdicts]
    if not verdicts:
        return "x" if done else "\u00b7"
    return GLYPHS[joint(verdicts)]


def _scale(one: StoredResult) -> str:
    """Return the scale, of a figure with the number of claims that hold, or `own settings`."""
    scales = "any scale" if len(one.scales) == len(SCALES) else "/".join(one.scales) or "own settings"
    count = sum(verdict == "holds" for verdict in one.verdicts)
    return scales if len(one.verdicts) == 1 else f"{scales} {count} of {len(one.verdicts)} hold"
