"""`icl verify`: an archive against its manifest, and against what today's code makes of its records.

1. Every file has the SHA-256 of the manifest, every record its seal, every run the files it was written with.
2. The exact risk of the final weights of every run, wherever the law has one, is that of its record.
3. Every check is measured again with its settings: the exact numbers, and the verdict.
4. One figure a paper is drawn again from its records: its table and the verdicts of its claims. The arrays it
   is drawn from, sampled ones as well, are computed again from the weights.

What took longer than `seconds` when it was made, or rests on a history of weights that was thinned, is listed
as not recomputed.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.digests import sha256_of
from icl.errors import InputError, one_line
from icl.jobs.requests.budget import Budget
from icl.jobs.requests.check import CheckRequest
from icl.jobs.requests.figure import FigureRequest, FigureRunner
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document
from icl.runs import archive, documents, json_records, layout
from icl.runs.archive import Archive, copied_runs
from icl.runs.record import RunRecord, complaint
from icl.text import brief, csv_text

EXACT = 1e-9  # relative, of exact risks: sums in float64
COMPUTED = 1e-6  # of the largest entry, of arrays and tables: searches and samples carry rounding further
THINNED = 2.0 ** -(archive.BITS + 1)  # of arrays that are rounded
ROUNDING = 1e-9  # below which two exact numbers that should vanish agree


@dataclass
class Verification:
    """Results of a verification: what agrees, differs or is missing, and `why` it differs."""

    agrees: list[str] = field(default_factory=list)
    differs: list[dict[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    not_recomputed: list[dict[str, str]] = field(default_factory=list)

    def compare(self, what: str, why: str) -> None:
        """Note that `what` agrees, or why it does not."""
        if why:
            self.differs.append({"what": what, "why": why})
        else:
            self.agrees.append(what)

    def skip(self, what: str, why: str) -> None:
        self.not_recomputed.append({"what": what, "why": why})


def verify(
    source: Archive, seconds: float = 60.0, info: Callable[[str], None] = lambda line: None
) -> Document:
    """Verify an archive; return its document."""
    started, found = time.monotonic(), Verification()
    info(f"{source.path}: digests")
    _files(source, found)
    session = Session(source.path, configs=ConfigDirs.of(None))
    if not found.missing and not found.differs:  # numbers of a damaged record say nothing
        for part in (_risks, _checks, _figures):
            for what in part(source, found, session, seconds):
                info(what)
    return {
        "archive": str(source.path),
        "agrees": found.agrees,
        "differs": found.differs,
        "missing": found.missing,
        "not_recomputed": found.not_recomputed,
        "seconds": time.monotonic() - started,
    }


def _files(source: Archive, found: Verification) -> None:
    entities = source.manifest()
    files = {id: entity for id, entity in entities.items() if entity.get("@type") == "File"}
    for name, entity in files.items():
        path = source.path / name
        if not path.is_file():
            found.missing.append(name)
        elif sha256_of(path) != entity.get("sha256"):
            found.compare(name, "its SHA-256 is not that of the manifest")
        else:
            found.agrees.append(name)
    for path in archive.files_in(source.path):
        name = path.relative_to(source.path).as_posix()
        if name not in files:
            found.compare(name, "it is not in the manifest")
    for place in layout.walk(source.path):
        why: str | None
        if place.kind == layout.RUNS:
            run = documents.read_record(place.path)
            unfinished = (run or {}).get("status") in archive.UNFINISHED
            why = None if unfinished else complaint(place.path.parent, run)
        else:
            why = json_records.complaint(json_records.read(place.path), None)
        if why:
            found.compare(place.path.relative_to(source.path).as_posix(), why)


def _risks(source: Archive, found: Verification, session: Session, seconds: float) -> Iterator[str]:
    from icl.training.load import restored

    yield f"{source.path}: exact risks"
    for place in layout.walk(source.path):
        run = source.run(place.id, place.fingerprint) if place.kind == layout.RUNS else None
        stored = ((run.run.get("metrics") or {}).get("exact_risk") or {}).get("by_seed") if run else None
        if run is None or not stored or not {"task", "model"} <= set(run.config):
            continue
        what = f"{layout.RUNS}/{place.id}/{place.fingerprint}: exact risk"
        known = [stored[str(seed)] for seed in run.run["seeds"]]
        if all(value is None for value in known):
            continue
        try:
            trained = restored(run)
            risk = trained.law.exact_risk(trained.transformer)
        except InputError as error:
            found.compare(what, one_line(error))
            continue
        if risk is None:
            found.compare(what, "today's code has none for these weights")
            continue
        now = risk(trained.transformer).tolist()
        pairs = [(a, b) for a, b in zip(known, now, strict=True) if a is not None]
        worst = max(abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in pairs)
        found.compare(what, "" if worst <= EXACT else f"it differs by {worst:.2g} of itself, above {EXACT:g}")


def _checks(source: Archive, found: Verification, session: Session, seconds: float) -> Iterator[str]:
    for place in layout.walk(source.path):
        if place.kind != "checks":
            continue
        what, record = f"check {place.id}", json_records.read(place.path)
        assert record is not None
        stored = record["document"]
        if stored["seconds"] > seconds:
            found.skip(what, f"it took {stored['seconds']:.0f} s")
            continue
        yield f"{source.path}: {what}"
        settings = dict(stored["settings"])
        if settings.pop("weights", None) is not None or stored.get("inputs"):
            found.skip(what, "it was measured on files that are not in the archive")
            continue
        try:
            request, _ = parse_named("check", place.id, [], session.configs)
            assert isinstance(request, CheckRequest)
            node = {"_target_": request.node["_target_"], **settings}
            now = documents.to_json(replace(request, node=node).measure(session))
        except InputError as error:
            found.compare(what, one_line(error))
            continue
        found.compare(what, "; ".join(_other_numbers(stored, now)))


def _other_numbers(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if now["verdict"] != stored["verdict"]:
        yield f"the verdict was {stored['verdict']} and is {now['verdict']}"
    kinds = stored.get("kinds", {})
    for name, before in stored["measured"].items():
        if kinds.get(name) != "exact" or not isinstance(before, int | float) or isinstance(before, bool):
            continue
        value = now["measured"].get(name)
        if not isinstance(value, int | float):
            yield f"{name} was {brief(before)} and is {brief(value)}"
        elif abs(value - before) > max(ROUNDING, COMPUTED * abs(before)):
            yield f"{name} was {brief(before, 8)} and is {brief(value, 8)}"


def _figures(source: Archive, found: Verification, session: Session, seconds: float) -> Iterator[str]:
    papers: dict[str, layout.Place] = {}
    for place in layout.walk(source.path):
        if place.kind == "figures":
            papers.setdefault(place.id.partition("/")[0], place)
    for place in papers.values():
        id, _, scale = place.id.rpartition("/")
        yield f"{source.path}: {id} at scale={scale}"
        try:
            request, _ = parse_named("figure", id, [f"scale={scale}"], session.configs)
            assert isinstance(request, FigureRequest)
            record = source.figures(id, scale)[0]
            made = record["document"].get("budget")
            asked = replace(
                request,
                settings=record["document"]["settings"],
                archive=source,
                budget=Budget(**made) if made else None,
            )
            _redraw(asked, record, source, found, session)
            _recompute(asked, record, source, found, session, seconds)
        except InputError as error:
            found.compare(f"figure {id}", one_line(error))


def _redraw(
    request: FigureRequest,
    record: Mapping[str, Any],
    source: Archive,
    found: Verification,
    session: Session,
) -> None:
    from icl.figures.files import render

    what, document = f"figure {request.id} at scale={request.scale}", record["document"]
    records = copied_runs(record, source)
    try:
        render(lambda: request.drawing.draw(records), ("png",))
        table, claims = request.drawing.table(records), request.claims(records, session)
    except LookupError as error:
        found.compare(what, f"today's code draws from {one_line(error)}, which its records do not have")
        return
    kept = source.path / "figures" / request.id / request.scale
    name = next(path.name for path in map(kept.joinpath, _names(document)) if path.suffix == ".csv")
    thinned = any("thinned" in run.run for run in records.values())
    found.compare(
        f"{what}: table", _other_table((kept / name).read_text("utf-8"), csv_text(table), thinned=thinned)
    )
    before = {claim["claim"]: claim["verdict"] for claim in document["claims"]}
    now = {claim["claim"]: claim["verdict"] for claim in claims}
    changed = [f"{c!r} was {v} and is {now.get(c, 'gone')}" for c, v in before.items() if now.get(c) != v]
    found.compare(f"{what}: {len(before)} claims", "; ".join(changed))


def _names(document: Mapping[str, Any]) -> list[str]:
    return [name.rpartition("/")[2] for name in document["files"].values()]


def _other_table(before: str, now: str, *, thinned: bool) -> str:
    """Return how two tables differ: their texts, or a number by more than rounding."""
    one, other = (list(csv.reader(io.StringIO(text))) for text in (before, now))
    if [len(row) for row in one] != [len(row) for row in other]:
        return f"it had {len(one)} rows and has {len(other)}"
    bound, worst = 4 * THINNED if thinned else COMPUTED, 0.0
    for row, other_row in zip(one, other, strict=True):
        for cell, other_cell in zip(row, other_row, strict=True):
            if cell == other_cell:
                continue
            try:
                a, b = float(cell), float(other_cell)
            except ValueError:
                return f"it had {cell!r} and has {other_cell!r}"
            size = max(abs(a), abs(b), ROUNDING)
            worst = max(worst, abs(a - b) / size if math.isfinite(a - b) else math.inf)
    return "" if worst <= bound else f"a number differs by {worst:.2g} of itself, above {bound:.2g}"


def _recompute(
    request: FigureRequest,
    record: Mapping[str, Any],
    source: Archive,
    found: Verification,
    session: Session,
    seconds: float,
) -> None:
    """Compute the arrays of a figure again from the weights in the archive."""
    runner = _Recomputing(request.scale, session, source, found, seconds)
    try:
        request.experiment.records(runner)
    except _NotInArchive as error:
        found.skip(f"arrays of {request.id}", one_line(error))


class _NotInArchive(Exception):
    """A run whose fingerprint has changed since, or that was not kept."""


class _Recomputing(FigureRunner):
    """Gives the archive's runs, and compares its arrays with those that today's code computes."""

    def __init__(
        self, scale: str, session: Session, source: Archive, found: Verification, seconds: float
    ) -> None:
        super().__init__(scale, session, source)
        self.source, self.found, self.seconds = source, found, seconds
        self.thinned = False

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        request = self.parse(self.chosen(experiment, overrides))
        run = self.source.run(request.id, request.identity)
        if run is None:
            raise _NotInArchive(f"today's configs ask for another run of {request.id} ({request.identity})")
        self.thinned = self.thinned or "thinned" in run.run
        return run

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
        code: Sequence[str] | None = None,
    ) -> RunRecord:
        from icl.runs.fingerprint import fingerprint

        mark = fingerprint(science)
        stored = self.source.run(name, mark)
        if stored is None:
            raise _NotInArchive(f"today's code asks for other arrays {name} ({mark})")
        what = f"{layout.RUNS}/{name}/{mark}: arrays"
        if self.thinned:
            self.found.skip(what, "the history of the weights they rest on was thinned")
        elif stored.run["seconds"] > self.seconds:
            self.found.skip(what, f"they took {stored.run['seconds']:.0f} s")
        else:
            self.found.compare(what, _other_arrays(stored, compute()))
        return stored


def _other_arrays(stored: RunRecord, now: Mapping[str, np.ndarray]) -> str:
    bound, other = max(COMPUTED, THINNED if "thinned" in stored.run else 0.0), []
    if set(now) != set(stored.weights):
        return f"they are others: {', '.join(sorted(set(now) ^ set(stored.weights)))}"
    for name, before in stored.weights.items():
        value = np.asarray(now[name])
        if value.shape != before.shape:
            other.append(f"{name} had the shape {before.shape} and has {value.shape}")
        elif not np.array_equal(value, before, equal_nan=True):
            size = np.nanmax(np.abs(before), initial=ROUNDING)
            if not np.allclose(value, before, rtol=bound, atol=bound * size, equal_nan=True):
                worst = np.nanmax(np.abs(value - before)) / size
                other.append(f"{name} differs by {worst:.2g} of its largest entry, above {bound:.2g}")
    return "; ".join(other)
