"""`icl list`: what there is and what is done here, from YAML headers and the store's index, without Hydra."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl.errors import InputError, one_of

GROUPS = {"checks": "check", "experiments": "experiment", "figures": "figure"}
KINDS = {"checks": "checks", "experiments": "runs", "figures": "figures"}
SCALES = ("smoke", "laptop", "paper")  # as icl.config, which would import OmegaConf
_HEADER = re.compile(r"^#\s*(paper|reference)\s*:\s*(.+)$")


def list_command(args: Sequence[str]) -> int:
    settings, folders = _arguments(args)
    document = listing(settings["paths.outputs"], folders)
    if settings["format"] == "json":
        print(json.dumps(document, indent=2))
    else:
        _show(document)
    return 0


def listing(outputs: str | Path, config_dirs: Sequence[str | Path] = ()) -> dict[str, list[dict[str, Any]]]:
    from icl.runs.index import read_index

    index = read_index(Path(outputs).absolute())
    document = {}
    for name, group in GROUPS.items():
        items = {
            item["id"]: item
            for folder in (_conf(), *map(Path, config_dirs))
            for item in _items(folder / group)
        }
        for item in items.values():
            # A figure is filed by scale: figures/ahn/fig1/laptop.
            ids = [item["id"], *(f"{item['id']}/{scale}" for scale in SCALES if name == "figures")]
            entries = [entry for id in ids for entry in index.get((KINDS[name], id), [])]
            item["done"] = any(entry.get("status") == "done" for entry in entries)
        document[name] = [items[key] for key in sorted(items)]
    return document


def _items(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.rglob("*.yaml")):
        head = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                break
            match = _HEADER.match(line)
            if match:
                head[match[1]] = match[2].strip()
        name = path.relative_to(folder).with_suffix("").as_posix()
        paper, reference = head.get("paper", name.partition("/")[0]), head.get("reference", "")
        found.append({"id": name, "paper": paper, "reference": reference, "done": False})
    return found


def _conf() -> Path:
    # As icl.config.conf_dir, which would import OmegaConf.
    package = Path(__file__).resolve().parent.parent
    return package / "conf" if (package / "conf").is_dir() else package.parent / "conf"


def _arguments(args: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    settings, folders, rest = {"format": "text", "paths.outputs": "outputs"}, [], list(args)
    while rest:
        arg = rest.pop(0)
        key, given, value = arg.partition("=")
        if arg in ("--help", "-h"):
            print("usage: icl list [format=text|json] [paths.outputs=DIR] [--config-dir DIR]")
            sys.exit(0)
        if key in ("--config-dir", "-cd"):
            folders.append(value if given else rest.pop(0) if rest else "")
            if not Path(folders[-1]).is_dir():
                raise InputError(f"--config-dir {folders[-1]}: no such folder")
        elif given and key in settings:
            settings[key] = value.strip("'\"")
        else:
            raise InputError(f"{arg}: icl list takes format=, paths.outputs= and --config-dir")
    one_of("format", settings["format"], ("text", "json"))
    return settings, folders


def _show(document: dict[str, list[dict[str, Any]]]) -> None:
    for name, items in document.items():
        print(f"{name} ({sum(item['done'] for item in items)} of {len(items)} done here)")
        width = max((len(item["id"]) for item in items), default=0)
        for item in items:
            print(f"  {'x' if item['done'] else '.'} {item['id']:<{width}}  {item['reference']}")
