"""The code a record depends on, by room and paper.

A record names its roots, the classes or modules that determine it: a check its class, a training run its
task, model, optimizer, schedule and the engine, a figure what computes and what draws it. The digest is that
of the files of the packages the roots lie in, and of those that these import: of `icl.theory.ahn` and
`icl.theory`, say, and not of `icl.theory.lu`. Only packages of icl that make numbers count, not its
machinery; of a user's own package every module does. Nothing is imported to find out.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from icl.errors import InputError
from icl.runs import documents
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord, find_done

ICL = Path(__file__).parents[1]
ROOMS = (
    "algorithms", "callbacks", "checks", "figures", "kernel", "models",
    "quantiles", "random", "tasks", "theory", "training", "weighted",
)  # fmt: skip
# With these a run's own classes become numbers; the last records a column of its own.
TRAINING = ("icl.training.run", "icl.models.attention", "icl.callbacks.ahn")
DRAWING = ("icl.figures.files",)  # and a figure's a picture
_WITH_PICTURES = ("figures",)  # elsewhere a picture, as of a heatmap's callback, is no number
_INSTALLED = ("torch", "pytorch_lightning")  # what else a target may come from; their versions are recorded
_SOURCES = (".py", ".cpp", ".h")
_IMPORT = re.compile(r"^[ \t]*(?:from (icl[\w.]*) import (\([^)]*\)|.*)|import (icl[\w.]*))", re.MULTILINE)
_FOR_TYPE_CHECKERS = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)*", re.MULTILINE)


class NotHere(InputError):
    """A package that is not on this machine, or not where Python looks."""


def code_digest(roots: Iterable[str]) -> str:
    """Digest of the code that `roots`, dotted names of classes or modules, depend on.

    It changes with any byte of it, and not with where a package lies or what is compiled. Files are read once
    per process, so that it is the code this process has loaded.
    """
    return _digest(tuple(sorted(set(roots))))


@functools.cache
def _digest(roots: tuple[str, ...]) -> str:
    parts = sorted(_read(place)[0] for place in reached(roots))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def reached(roots: Iterable[str]) -> set[Path]:
    """Return the packages of icl, as folders, and the users' that `roots` depend on."""
    waiting = [place for root in roots for place in _places_of_root(root)]
    found: set[Path] = set()
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += _read(place)[1]
    return found


def _places_of_root(root: str) -> list[Path]:
    """Return a package of icl, or a user's, or the file of a user's module or statements."""
    if root.endswith(".py") and Path(root).is_file():
        return [Path(root)]
    top = root.partition(".")[0]
    if top == "icl":
        return _place(root)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else [None]
    if places[0] is None:
        raise NotHere(f"_target_={root}: no package {top}; is its folder in PYTHONPATH?")
    return [Path(places[0])]


def _place(name: str) -> list[Path]:
    """Return the package of icl in which a dotted name lies, if it is one that makes numbers."""
    parts = name.split(".")[1:]
    if not parts or parts[0] not in ROOMS:
        return []
    place = ICL / parts[0]
    for part in parts[1:]:
        place = place / part if (place / part).is_dir() else place
    return [place if place.is_dir() else place.with_suffix(".py")]


@functools.cache
def _read(place: Path) -> tuple[bytes, list[Path]]:
    """Return the digest of a package's files, and the packages of icl that they import."""
    ours = ICL in place.parents
    found = [place] if place.is_file() else sorted(place.glob("*") if ours else place.rglob("*"))
    top = ICL.parent if ours else place.parent
    total, imported = hashlib.sha256(), []
    for path in found:
        if path.suffix in _SOURCES:
            content = path.read_bytes()
            total.update(f"{path.relative_to(top)}\0".encode() + hashlib.sha256(content).digest())
            imported += [p for name in _imports(content.decode(errors="replace")) for p in _place(name)]
    if ours and place.relative_to(ICL).parts[0] not in _WITH_PICTURES:
        imported = [other for other in imported if other != ICL / "figures"]
    return total.digest(), imported


def _imports(source: str) -> Iterator[str]:
    """Yield the dotted names that a source imports from icl, but for type checkers alone."""
    for module, names, whole in _IMPORT.findall(_FOR_TYPE_CHECKERS.sub("", source)):
        yield module or whole
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))


def targets(*nodes: Any) -> list[str]:
    """Return every `_target_` of nested settings that is ours or the user's own: roots."""
    found = sorted({name for node in nodes for name in _targets(node)})
    return [name for name in found if name.partition(".")[0] not in _INSTALLED]


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        node = [*node.values()]
    if isinstance(node, list | tuple):
        yield from (name for value in node for name in _targets(value))


def derived_digest(digest: str, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Digest of what is drawn by code of this digest from runs with these contents."""
    return fingerprint({"code": digest, "made": {name: run["content_id"] for name, run in runs.items()}})


def content_ids(records: Mapping[str, RunRecord]) -> dict[str, dict[str, Any]]:
    """Return the paths below outputs and the content of the runs that a record is made from."""
    return {
        name: {"run": f"runs/{one.run['experiment']}/{one.run['fingerprint']}", "content_id": one.content_id}
        for name, one in records.items()
    }


def current_digest(record: Mapping[str, Any], outputs: Path) -> str | None:
    """Return the digest that `record` (a run, a check, a figure) would have if it were made by today's code,
    "gone" where it could not be made. None where that cannot be known, since its package is not here: that
    makes no record stale.
    """
    try:
        digest = code_digest(record["code"]) if record.get("code") else "gone"
    except NotHere:
        return None
    made: dict[str, Mapping[str, Any]] = {}
    for name, source in record.get("made", {}).items():
        folder = outputs / source["run"]
        run = documents.read_record(folder / "run.json") or {}
        found = find_done(folder, current_digest(run, outputs))
        if found is None:
            return "gone"
        made[name] = {"content_id": found.content_id}
    return derived_digest(digest, made) if "made" in record else digest
