"""List every run below an outputs folder, from OUTPUTS/index where the run's files have not changed since.

The index holds nothing that the runs do not: what does not fit the files of a run, or is damaged, is read
from the run's folder again. Most runs share most groups of their configs; each is parsed and kept once.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icl.digests import digest
from icl.runs import atomic, documents, layout
from icl.runs.code import current_digest
from icl.runs.lock import is_live
from icl.runs.metric_kinds import final_risk, of_one_matrix
from icl.runs.record import DATA_FILES
from icl.runs.sweeps import error_of_traceback

INDEX = "index"
STATES = ("done", "running", "interrupted", "failed", "damaged")
_FILES = ("run.json", *DATA_FILES)
_FORMAT = 1

_Summary = dict[str, Any]
_Stats = Mapping[str, tuple[int, int, int, int]]  # of files: inode, size, times of change


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run as a list shows it. `metrics` are means over the seeds, None where undefined."""

    path: Path
    experiment: str
    fingerprint: str
    status: str  # one of STATES
    why: str  # it failed or is damaged
    date: str  # of its end, or else of its start
    seeds: Sequence[int] = ()
    steps: int | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict, repr=False)
    notes: Sequence[str] = ()
    figure: str = ""  # that trained it for itself
    attempt: int = 1
    overrides: Sequence[str] = field(default=(), repr=False)
    choices: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    digest: str | None = field(default=None, repr=False)
    code: Sequence[str] = field(default=(), repr=False)

    @property
    def is_training(self) -> bool:
        """Return whether it is a training run: a figure's computed arrays are stored as a run, too."""
        return "settings" not in self.config

    @property
    def risk(self) -> tuple[str, float] | None:
        """The name and the mean of the final risk: exact, projected or sampled, or else the loss."""
        return final_risk(self.metrics)

    @property
    def stale(self) -> bool | None:
        """True of a run that was made with other code than today's; None where that code is not here."""
        now = current_digest({"code": list(self.code)}, self.path)
        return None if now is None else now != self.digest

    @property
    def wandb_id(self) -> str:
        return f"{self.fingerprint}-{self.attempt}"


def stored_runs(outputs: str | Path) -> list[StoredRun]:
    """Return every run below `outputs`, the newest first. The index is renewed where that is allowed."""
    top = Path(outputs).absolute()
    before, known = _read_index(top)
    shared, entries, changed = _Shared(known), {}, False
    found: list[tuple[int, StoredRun]] = []
    for place in (place for place in layout.walk(top) if place.kind == layout.RUNS):
        stats = _stats(str(place.path.parent))
        name, mark = f"{place.id}/{place.fingerprint}", digest(repr(stats).encode())
        entry = before.get(name)
        if entry is None or entry[0] != mark:
            entry, changed = [mark, _summarized(place, stats, shared)], True
        entries[name] = entry
        found.append((stats["run.json"][2], _stored(place, entry[1], shared)))
    if changed or len(entries) != len(before):
        _write_index(top, entries, shared)
    found.sort(key=lambda pair: (pair[1].date, pair[0], str(pair[1].path)), reverse=True)
    return [run for _, run in found]


class _Shared:
    """Texts that many runs share, numbered, and what they are parsed to."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        self._parsed: dict[int, Any] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def parsed(self, number: int) -> Any:
        if number not in self._parsed:
            self._parsed[number] = _parsed(self.texts[number])
        return self._parsed[number]

    def config(self, numbers: Sequence[int]) -> dict[str, Any]:
        return {key: node for number in numbers for key, node in self.parsed(number).items()}


def _summarized(place: layout.Place, stats: _Stats, shared: _Shared) -> _Summary:
    """Return what is kept of a run, from its folder."""
    run = documents.read_record(place.path)
    try:
        text = (place.path.parent / "config.yaml").read_text(encoding="utf-8")
        blocks = [shared.number(part) for part in documents.outermost_keys(text)]
        shared.config(blocks)  # seen to be one
    except Exception:  # whatever a damaged file leads to
        blocks = []
    if run is None:
        why = "its run.json is damaged" if place.path.exists() else "it has no run.json"
        return {"status": "damaged", "why": why, "config": blocks}
    try:
        return _summary(place, run, stats, shared) | {"config": blocks}
    except (TypeError, ValueError, KeyError, AttributeError):
        return {"status": "damaged", "why": "its run.json is damaged", "config": blocks}


def _summary(place: layout.Place, run: Mapping[str, Any], stats: _Stats, shared: _Shared) -> _Summary:
    status, why = run["status"], _damage(place, run, stats)
    if why:
        status = "damaged"
    elif run.get("diverged"):
        status, why = "failed", run["notes"][-1]
    elif status == "failed":
        why = error_of_traceback(place.path.with_name("traceback.txt"))
    metrics = {
        str(name): None if entry["mean"] is None else float(entry["mean"])
        for name, entry in run.get("metrics", {}).items()
        if not of_one_matrix(name)
    }
    about = {"choices": dict(run.get("choices", {})), "code": [str(name) for name in run.get("code", [])]}
    return {
        "status": str(status),
        "why": why,
        "date": str(run.get("ended") or run.get("started") or ""),
        "seeds": [int(seed) for seed in run.get("seeds", [])],
        "steps": run.get("steps"),
        "metrics": metrics,
        "notes": [str(note) for note in run.get("notes", [])],
        "figure": str(run.get("figure") or ""),
        "attempt": int(run.get("attempt", 1)),
        "overrides": [str(override) for override in run.get("overrides", [])],
        "digest": run.get("digest"),
        "about": shared.number(json.dumps(about)),
    }


def _damage(place: layout.Place, run: Mapping[str, Any], stats: _Stats) -> str:
    """Return how a run contradicts its place or its files, as far as their names and sizes show it."""
    if (run["experiment"], run["fingerprint"]) != (place.id, place.fingerprint):
        return f"it is the record of {run['experiment']}/{run['fingerprint']}"
    if run.get("schema") != layout.SCHEMA:
        return f"it has schema version {run.get('schema')}, this is version {layout.SCHEMA}"
    for name, written in run.get("files", {}).items():
        there = stats[name][1] if name in stats else written["bytes"]
        if there != written["bytes"]:
            return f"its {name} is damaged ({there} of {written['bytes']} bytes)"
    return ""


def _stored(place: layout.Place, kept: _Summary, shared: _Shared) -> StoredRun:
    own = {key: value for key, value in kept.items() if key not in ("about", "config")}
    about = shared.parsed(kept["about"]) if "about" in kept else {}
    folder = place.path.parent
    if own["status"] == "running" and not is_live(folder / "lock"):
        own["status"] = "interrupted"  # killed
    config = shared.config(kept["config"])
    return StoredRun(folder, place.id, place.fingerprint, **{"date": "", **own, **about, "config": config})


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        import yaml

        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _stats(folder: str) -> _Stats:
    """Return what changes with any file that counts."""
    found = {}
    for name in _FILES:
        try:
            now = os.stat(f"{folder}/{name}")
            found[name] = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        except OSError:
            found[name] = (0, 0, 0, 0)
    return found


def _read_index(top: Path) -> tuple[dict[str, list[Any]], list[str]]:
    try:
        sealed, _, content = (top / INDEX).read_bytes().partition(b"\n")
        if digest(content) != sealed.decode():
            return {}, []
        document = json.loads(content)
        return (document["runs"], document["shared"]) if document["format"] == _FORMAT else ({}, [])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, []


def _write_index(top: Path, entries: Mapping[str, Any], shared: _Shared) -> None:
    """Write the index, with the texts that some run uses."""
    used = _Shared([])

    def renumbered(kept: _Summary) -> _Summary:
        about = {"about": used.number(shared.texts[kept["about"]])} if "about" in kept else {}
        return kept | about | {"config": [used.number(shared.texts[number]) for number in kept["config"]]}

    runs = {name: [mark, renumbered(kept)] for name, (mark, kept) in entries.items()}
    content = json.dumps({"format": _FORMAT, "shared": used.texts, "runs": runs}).encode()
    with contextlib.suppress(OSError):  # of somebody else's outputs, or on a full disk
        atomic.write_bytes(top / INDEX, f"{digest(content)}\n".encode() + content)
