"""The catalog of checks, experiments and figures, from the headers of the configs, without Hydra."""

import itertools
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from icl.config.search_path import ConfigDirs, about_statements
from icl.loggers.names import words_of
from icl.resolver import SCALES
from icl.runs import json_records, layout, record

MOST_RESULTS = 100  # of a check, in its listing
_HEADER = re.compile(r"^#\s*(paper|title|origin|reference|formula|quote)\s*:\s*(.+)$")


RECORDS = {"check": "checks", "experiment": "runs", "figure": "figures"}  # folders, by config group


class CatalogEntry(NamedTuple):
    """An entry of the catalog."""

    id: str
    paper: str
    reference: str
    formula: str = ""  # the claim in LaTeX
    title: str = ""  # "Theorem 1: the best single layer"
    origin: str = ""  # "icl" where the statement is this project's own, else the paper
    quote: str = ""  # the line of the paper's text that it is about
    claim: str = ""


def listing(outputs: Path, configs: ConfigDirs) -> dict[str, list[dict[str, object]]]:
    """Return the document of `icl list`."""
    found: dict[str, list[dict[str, object]]] = {}
    for group in RECORDS:
        found[f"{group}s"] = []
        users = own_checks(outputs) if group == "check" else []
        for item in [*entries(group, configs), *users]:
            own = {key: getattr(item, key) for key in ("id", "title", "paper", "origin", "reference")}
            records = list(itertools.islice(stored(outputs, group, item.id), MOST_RESULTS))
            newest = records[0][1] if records else {}
            claims = [_judged(one) for one in newest.get("claims", [newest]) if "verdict" in one]
            verdicts = [one["verdict"] for one in claims]
            done: dict[str, object] = {"done": bool(records), "verdicts": verdicts, "claims": claims}
            if group == "check":
                results = [{**_judged(one), "record": str(path)} for path, one in records]
                done |= {"statement": item.claim, "results": results}
            found[f"{group}s"].append(own | done)
    return found


def _judged(one: Mapping[str, Any]) -> dict[str, str]:
    """Return a verdict, what was expected, and what was typed of a check's settings."""
    typed = words_of(one.get("typed", ())[1:])  # behind what was asked for
    return {"verdict": one["verdict"], "expected": one["expected"], "typed": typed}


def entries(group: str, configs: ConfigDirs) -> list[CatalogEntry]:
    """Return every option of a group, shipped or the user's own."""
    return [entry_of(group, name, configs) for name in configs.options(group)]


def entry_of(group: str, id: str, configs: ConfigDirs) -> CatalogEntry:
    """Return one option of a group, by the header of its config or by what its statement says of itself."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), configs.text(group, id).splitlines())
    head = {match[1]: match[2].strip() for line in lines if (match := _HEADER.match(line))}
    head = head or about_statements("index").get(id, {})
    paper = head.get("paper") or id.partition("/")[0]
    title, origin = head.get("title") or id, head.get("origin") or paper
    reference, formula, quote, claim = (head.get(k, "") for k in ("reference", "formula", "quote", "claim"))
    return CatalogEntry(id, paper, reference, formula, title, origin, quote, claim)


def entry_of_statement(id: str, cls: Any) -> CatalogEntry:
    """Return what a statement that no config names says of itself."""
    paper, _, name = id.rpartition("/")
    about = cls.where, cls.formula, cls.title or name, cls.origin, cls.quote, cls.claim
    return CatalogEntry(id, paper.partition("/")[0], *about)


def own_checks(outputs: Path) -> list[CatalogEntry]:
    """Return the statements that no config names: of installed packages, and of files that were decided."""
    found = []
    if entry_points(group="icl.statements"):
        from icl.checks.files import installed

        found = [entry_of_statement(id, cls) for id, cls in installed().items()]
    for folder in sorted((outputs / "checks").glob("own/*/*")):
        id = folder.relative_to(outputs / "checks").as_posix()
        for _, said in itertools.islice(stored(outputs, "check", id), 1):
            found.append(CatalogEntry(id, "own", said["reference"], title=said["title"], claim=said["claim"]))
    return found


def stored(outputs: Path, group: str, id: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield path and document of finished records, the newest first, with whatever settings and code; of an
    experiment the first run and {}."""
    folder = outputs / RECORDS[group] / id
    if group == "experiment":
        runs = (path for path in folder.glob("*/run.json") if record.find_done(path.parent, None))
        yield from ((path, {}) for path in itertools.islice(runs, 1))
    places = [folder / scale for scale in SCALES] if group == "figure" else [folder]
    paths = [path for place in places for path in (*place.glob("*.json"), *place.glob(f"*/{layout.FIGURE}"))]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        found = json_records.read(path)
        if found is not None:
            yield path, found["document"]
