"""An archive: finished records in the layout of an outputs folder, with a manifest of their digests.

    ARCHIVE/
        README.md  ro-crate-metadata.json   what is in it, for people and for programs (RO-Crate 1.1)
        runs/EXPERIMENT/FINGERPRINT/        config.yaml  metrics.csv  weights.npz  verdicts.json  run.json
        figures/PAPER/FIG/SCALE/            FINGERPRINT.json, and the figure's png, csv and md
        checks/PAPER/ID/FINGERPRINT.json

A record in an archive is of the commit that made it, whatever the code is today: nothing calls it stale.

Two things are thinned, so that a paper's set takes some tens of megabytes. Of a training run whose weights
file is above a megabyte, every fourth stored step is kept, with the first and the last; above sixteen these
two alone. Large arrays that a figure computes are rounded to 13 significant bits. Such a run.json has
`thinned`, with the digests of what was there. Final weights and all smaller arrays are kept to the bit.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.digests import digest
from icl.errors import InputError
from icl.runs import atomic, checkpoint, documents, json_records, layout
from icl.runs.record import DATA_FILES, VERDICTS, RunRecord, complaint
from icl.runs.store import RunStore

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "ro-crate-metadata.json"
README = "README.md"
CHECKPOINTS = "checkpoints"
PICTURES = ("png", "csv", "md")  # of a figure; its other formats are drawn again from the arrays
UNFINISHED = ("running", "interrupted")
LARGE_FILE = 1 << 20  # bytes of weights.npz above which the history is thinned
LARGEST_FILE = 16 << 20  # above which nothing of it is kept
LARGE_ARRAY = 1 << 16  # numbers above which a computed array is rounded
EVERY = 4  # stored steps, of which one is kept
BITS = 12  # of the mantissa, beside the leading one


@dataclass(frozen=True)
class Archive:
    """An archive that is there, to read from. `given` is its path as it was typed, `key` what it was for."""

    path: Path
    given: str
    key: str = "from"

    @classmethod
    def at(cls, given: object, key: str = "from") -> Archive:
        """Return the archive in folder `given`."""
        if not isinstance(given, str) or not given:
            raise InputError(f"{key}={given}: must be the folder of an archive")
        path = Path(given).expanduser().absolute()
        if not path.is_dir():
            raise InputError(f"{key}={given}: no such folder")
        archive = cls(path, given, key)
        archive.manifest()
        return archive

    def manifest(self) -> dict[str, dict[str, Any]]:
        """Return the entities of the manifest by their id."""
        if not (self.path / MANIFEST).is_file():
            raise self.error(f"is no archive, since it has no {MANIFEST} (icl archive FOLDER writes one)")
        document = documents.read_json(self.path / MANIFEST)
        try:
            entities = {str(entity["@id"]): entity for entity in (document or {})["@graph"]}
            return entities if entities["./"] else {}
        except (KeyError, TypeError):
            raise self.error(f"its {MANIFEST} is damaged") from None

    def error(self, why: str) -> InputError:
        return InputError(f"{self.key}={self.given}: {why}")

    def run(self, experiment: str, fingerprint: str) -> RunRecord | None:
        """Return a finished run; None where there is none. A damaged one is refused."""
        folder = RunStore(self.path).path(experiment, fingerprint)
        if not folder.is_dir():
            return None
        run = documents.read_record(folder / "run.json")
        if run is not None and run.get("status") in UNFINISHED:
            return None
        why = complaint(folder, run)
        if run is None or why is not None:
            raise self.error(f"{self._name(folder)}: {why}")
        return RunRecord(folder, run)

    def run_at(self, place: str) -> RunRecord:
        """Return the run at runs/EXPERIMENT/FINGERPRINT, which the archive needs."""
        experiment, _, fingerprint = place.removeprefix(f"{layout.RUNS}/").rpartition("/")
        found = self.run(experiment, fingerprint)
        if found is None:
            raise self.error(f"{place} is missing")
        return found

    def unfinished(self, experiment: str, fingerprint: str) -> dict[str, Any] | None:
        """Return the run.json of a run that can be continued."""
        folder = RunStore(self.path).path(experiment, fingerprint)
        run = documents.read_record(folder / "run.json") or {}
        can_go_on = run.get("status") in UNFINISHED and checkpoint.candidates(folder / CHECKPOINTS)
        return run if can_go_on else None

    def restore(self, experiment: str, fingerprint: str, outputs: Path) -> None:
        """Copy an unfinished run to `outputs`, where nothing of it is yet."""
        source = RunStore(self.path).path(experiment, fingerprint)
        target = RunStore(outputs).path(experiment, fingerprint)
        with atomic.writing(outputs):
            target.parent.mkdir(parents=True, exist_ok=True)
            part = atomic.temporary(target)
            shutil.copytree(source, part)
            part.rename(target)

    def figures(self, id: str, scale: str) -> list[dict[str, Any]]:
        """Return the records of a figure at a scale, the newest first."""
        folder = self.path / "figures" / id / scale
        found = []
        for path in sorted(folder.glob("*.json")):
            record = json_records.read(path)
            why = json_records.complaint(record, None)
            if record is None or why is not None:
                raise self.error(f"{self._name(path)}: {why}")
            found.append(record)
        return sorted(found, key=lambda record: -record["written"])

    def names(self) -> list[str]:
        """Return its figures, `ahn/fig1 at scale=paper`; where there are none, its experiments with runs."""
        figures, runs = [], []
        for place in layout.walk(self.path):
            if place.kind == "figures":
                id, _, scale = place.id.rpartition("/")
                record = json_records.read(place.path) or {"document": {"scale": scale}}
                figures.append(f"{id} at {scale_of(record['document'])}")
            elif place.kind == layout.RUNS:
                runs.append(f"runs of {place.id}")
        return list(dict.fromkeys(figures or runs))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()


def scale_of(document: Mapping[str, Any]) -> str:
    """Return the scale and the budget of a figure's document as they are typed."""
    budget = document.get("budget")
    return f"scale={document['scale']}" + (f" budget={budget['name']}" if budget else "")


def is_as_shipped(record: Mapping[str, Any]) -> bool:
    """Return whether a figure was drawn with the settings that were shipped: the names of its files tell
    others."""
    return record["fingerprint"] not in Path(record["document"]["files"]["png"]).name


def commit_of(made_by: Mapping[str, Any]) -> str:
    """Return the commit of a run.json or of a record's provenance; "unknown" outside a checkout."""
    git = made_by.get("git")
    return "unknown" if not git else f"{git['commit']}{' with changes' if git['dirty'] else ''}"


def short(commit: str) -> str:
    """Return a commit in ten digits, with what follows it."""
    name, space, rest = commit.partition(" ")
    return name[:10] + space + rest


def copy_run(source: Path, target: Path) -> bool:
    """Copy a finished run, thinned, or an unfinished one with its newest checkpoint; return whether anything
    was new."""
    run = documents.read_record(source / "run.json") or {}
    there = documents.read_record(target / "run.json")
    if run.get("status") in UNFINISHED:
        return _copy_unfinished(source, target)
    if there is not None and complaint(target, there) is None and _same_run(run, there):
        return False
    part = atomic.temporary(target)
    part.mkdir(parents=True)
    for name in (*DATA_FILES, VERDICTS):
        if (source / name).exists():
            atomic.write_bytes(part / name, (source / name).read_bytes())
    weights = _thinned(RunRecord(source, run))
    if weights is not None:
        atomic.write_bytes(part / "weights.npz", weights)
        now = {"bytes": len(weights), "digest": digest(weights)}
        run = {
            **run,
            "files": {**run["files"], "weights.npz": now},
            "thinned": {"weights.npz": run["files"]["weights.npz"]},
        }
    documents.write_record(part / "run.json", run)
    if (verdicts := documents.read_record(part / VERDICTS)) is not None:
        documents.write_record(
            part / VERDICTS, {**verdicts, "weights": run["files"]["weights.npz"]["digest"]}
        )
    _replace(target, part)
    return True


def copy_figure(record: Mapping[str, Any], source: Path, target: Path) -> bool:
    """Copy a figure's record with its picture, table and description, in the place of an earlier one; the
    copy names files and runs by their places in the archive."""
    names = {kind: Path(name).name for kind, name in record["document"]["files"].items()}
    runs = sorted({run for _, run in runs_of(record)})
    document = {key: value for key, value in record["document"].items() if key != "archive"}
    record = {**record, "document": {**document, "files": names, "runs": runs}}
    if json_records.read(target) == record:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    files = {Path(record["document"]["files"][kind]).name for kind in PICTURES}
    for path in target.parent.glob("*.json"):
        before = json_records.read(path)
        if before is None or files & {Path(name).name for name in before["document"]["files"].values()}:
            path.unlink()
    for name in sorted(files):
        atomic.write_bytes(target.parent / name, source.with_name(name).read_bytes())
    documents.write_record(target, record)
    return True


def copy_check(source: Path, target: Path) -> bool:
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(target, source.read_bytes())
    return True


def files_in(folder: Path) -> Iterator[Path]:
    """Yield every file of an archive but the manifest and what other commands leave there, in order."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        own = inside.as_posix() in (MANIFEST, "index") or layout.TEMPORARY.fullmatch(path.name)
        if path.is_file() and not own:
            yield path


def rounded(array: np.ndarray) -> np.ndarray:
    """Return float64 numbers rounded to 13 significant bits, as float32 where that holds them."""
    import numpy as np

    bits = array.view(np.uint64)
    keep = np.uint64(52 - BITS)
    half = (np.uint64(1) << (keep - np.uint64(1))) - np.uint64(1) + ((bits >> keep) & np.uint64(1))
    nearest = (((bits + half) >> keep) << keep).view(np.float64)
    nearest = np.where(np.isfinite(array), nearest, array)
    with np.errstate(over="ignore", under="ignore"):
        single = nearest.astype(np.float32)
    is_held = np.array_equal(single.astype(np.float64), nearest, equal_nan=True)
    return single if is_held else nearest


def _thinned(run: RunRecord) -> bytes | None:
    """Return the thinned content of weights.npz; None where nothing is thinned."""
    import numpy as np

    file = run.path / "weights.npz"
    size = file.stat().st_size
    if size <= min(LARGE_FILE, 4 * LARGE_ARRAY):
        return None
    arrays = dict(run.weights)
    if "history_steps" in arrays and size > LARGE_FILE:
        last = len(arrays["history_steps"]) - 1
        kept = [s for s in range(last + 1) if size <= LARGEST_FILE and (s % EVERY == 0 or s == last)]
        arrays["history_steps"] = arrays["history_steps"][kept]
        arrays |= {name: a[:, kept] for name, a in arrays.items() if name.endswith("_history")}
    elif "history_steps" not in arrays:
        arrays = {
            name: rounded(a) if a.dtype == np.float64 and a.size > LARGE_ARRAY else a
            for name, a in arrays.items()
        }
    if all(array is run.weights[name] for name, array in arrays.items()):
        return None
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def _same_run(run: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Return whether an archived run is a copy of this one."""
    before = {**there.get("files", {}), **there.get("thinned", {})}
    return bool(before == run.get("files") and there.get("digest") == run.get("digest"))


def _copy_unfinished(source: Path, target: Path) -> bool:
    """Copy a run with its newest checkpoint alone, from which it goes on bit for bit."""
    newest = next(iter(checkpoint.candidates(source / CHECKPOINTS)), None)
    if newest is None:
        return False
    if (target / CHECKPOINTS / newest.name).is_file():
        return False
    part = atomic.temporary(target)
    (part / CHECKPOINTS).mkdir(parents=True)
    for name in ("config.yaml", "run.json"):
        atomic.write_bytes(part / name, (source / name).read_bytes())
    atomic.write_bytes(part / CHECKPOINTS / newest.name, newest.read_bytes())
    _replace(target, part)
    return True


def _replace(target: Path, part: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    part.rename(target)


def runs_of(record: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the names and places of the runs a figure was drawn from."""
    return [(drawn["name"], drawn["run"]) for drawn in record["document"]["drawn_from"]]


def copied_runs(record: Mapping[str, Any], archive: Archive) -> dict[str, RunRecord]:
    """Return the runs a figure was drawn from, by the names it knows them by."""
    return {name: archive.run_at(place) for name, place in runs_of(record)}


def commits(records: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(commit_of(record) for record in records))
