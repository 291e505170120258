"""`icl list`: what there is and what is done here, without Hydra."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.config.places import Configs
from icl.errors import InputError, one_of
from icl.jobs.catalog import listing


def list_command(args: Sequence[str]) -> int:
    settings, folder, rest = {"format": "text", "paths.outputs": "outputs"}, None, list(args)
    while rest:
        arg = rest.pop(0)
        key, given, value = arg.partition("=")
        if arg in ("--help", "-h"):
            print("usage: icl list [format=text|json] [paths.outputs=DIR] [--config-dir DIR]")
            return 0
        if key in ("--config-dir", "-cd"):
            folder = value if given else rest.pop(0) if rest else ""
        elif given and key in settings:
            settings[key] = value.strip("'\"")
        else:
            raise InputError(f"{arg}: icl list takes format=, paths.outputs= and --config-dir")
    one_of("format", settings["format"], ("text", "json"))
    document = listing(Path(settings["paths.outputs"]).absolute(), Configs.of(folder))
    if settings["format"] == "json":
        print(json.dumps(document, indent=2))
    else:
        _show(document)
    return 0


def _show(document: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, items in document.items():
        print(f"{name} ({sum(item['done'] for item in items)} of {len(items)} done here)")
        width = max((len(item["id"]) for item in items), default=0)
        for item in items:
            print(f"  {'x' if item['done'] else '.'} {item['id']:<{width}}  {item['reference']}")
