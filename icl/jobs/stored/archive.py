"""`icl archive`: the finished records of an outputs folder, chosen by paper, figure or check and by scale, as
one folder that can be kept, published and drawn from (icl.runs.archive).

Called again with the same folder it adds what is finished by now, such as a figure that was drawn from its
pieces. Nothing is taken for stale: each record keeps the commit it was made by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icl.config.search_path import SCALES, ConfigDirs
from icl.digests import sha256_of
from icl.errors import InputError, nearest, one_of
from icl.jobs.stored import catalog
from icl.runs import archive, atomic, documents, json_records, layout
from icl.runs.archive import commit_of, short
from icl.runs.record import RunRecord, complaint
from icl.text import brief, outcome

CONTEXT = "https://w3id.org/ro/crate/1.1"
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
LICENSE = "https://spdx.org/licenses/MIT"
_ENCODING = {
    ".json": "application/json", ".yaml": "application/yaml", ".csv": "text/csv", ".md": "text/markdown",
    ".png": "image/png", ".npz": "application/zip", ".pt": "application/octet-stream",
}  # fmt: skip


@dataclass(frozen=True)
class ArchiveRequest:
    """Request to archive records of `outputs` in `folder`: `only` papers, figures, checks; all if empty."""

    folder: Path
    outputs: Path
    only: tuple[str, ...] = ()
    scale: str = "laptop"
    unfinished: bool = False
    configs: ConfigDirs = field(default_factory=ConfigDirs)

    def __post_init__(self) -> None:
        one_of("scale", self.scale, SCALES)
        known = [*catalog.papers(self.configs)]
        for group in ("figure", "check"):
            known += [entry.id for entry in catalog.entries(group, self.configs)]
        for name in self.only:
            if name not in known:
                raise InputError(f"only={name}: no such paper, figure or check{nearest(name, known)}")

    def wants(self, id: str) -> bool:
        return not self.only or any(f"{id}/".startswith(f"{name}/") for name in self.only)


def write_archive(request: ArchiveRequest) -> dict[str, Any]:
    """Write or extend the archive; return its document."""
    chosen = list(_chosen(request))
    if not chosen:
        asked = f"only=[{','.join(request.only)}] " if request.only else ""
        raise InputError(f"{asked}scale={request.scale}: nothing finished in {request.outputs}")
    target = request.folder
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: is a file, must be a folder")
    if target.is_dir() and any(target.iterdir()) and not (target / archive.MANIFEST).is_file():
        raise InputError(f"{target}: is not empty and no archive")
    new = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for place in chosen:
            to = target / place.path.relative_to(request.outputs)
            if _copy(place, to):
                new.append(f"{place.kind}/{place.id}/{place.fingerprint}")
        sha256 = renew_manifest(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from error
    files = [path.relative_to(target).as_posix() for path in archive.files_in(target)]
    size = sum((target / name).stat().st_size for name in files)
    return {"folder": str(target), "files": files, "sha256": sha256, "bytes": size, "new": new}


def renew_manifest(folder: Path) -> str:
    """Write README.md and the manifest from the records that are there; return the manifest's SHA-256."""
    records = _Records(folder)
    atomic.write_bytes(folder / archive.README, records.readme().encode())
    text = json.dumps(records.crate(), indent=1, ensure_ascii=False) + "\n"
    atomic.write_bytes(folder / archive.MANIFEST, text.encode())
    return sha256_of(folder / archive.MANIFEST)


def _copy(place: layout.Place, to: Path) -> bool:
    if place.kind == layout.RUNS:
        return archive.copy_run(place.path.parent, to.parent)
    if place.kind == "figures":
        record = json_records.read(place.path)
        assert record is not None
        return archive.copy_figure(record, place.path, to)
    return archive.copy_check(place.path, to)


def _chosen(request: ArchiveRequest) -> Iterator[layout.Place]:
    """Yield the records that are asked for: runs first, so that no figure is there without its runs."""
    places = list(layout.walk(request.outputs))
    by_kind = {kind: [p for p in places if p.kind == kind] for kind in (layout.RUNS, *layout.JSON_KINDS)}
    figures, drawn_from = [], set()
    for place in by_kind["figures"]:
        id, _, scale = place.id.rpartition("/")
        record = json_records.read(place.path)
        if scale == request.scale and request.wants(id) and _is_finished(place, record, request):
            figures.append(place)
            drawn_from |= {run for _, run in archive.runs_of(record or {})}
    yield from _runs(by_kind[layout.RUNS], drawn_from, request)
    yield from figures
    for place in by_kind["checks"]:
        record = json_records.read(place.path)
        if request.wants(place.id) and record is not None and json_records.complaint(record, None) is None:
            settings = record["document"]["settings"]
            if request.scale in catalog.scales_of(place.id, settings, request.configs):
                yield place


def _is_finished(place: layout.Place, record: Mapping[str, Any] | None, request: ArchiveRequest) -> bool:
    """Return whether a figure was drawn from the runs that are there or, where the archive has pieces of it
    but not the figure, from these."""
    if record is None or json_records.complaint(record, None) or "drawn_from" not in record["document"]:
        return False
    document = record["document"]
    folders = [request.outputs]
    if drawn_from := document.get("archive"):
        folders.append(request.folder)
        is_other = Path(drawn_from["folder"]).resolve() != request.folder.resolve()
        if is_other or _is_kept(place, document, request):
            return False
    pictures = [place.path.with_name(Path(document["files"][kind]).name) for kind in archive.PICTURES]
    for run in record.get("made", {}).values():
        there = _finished_run(request.outputs / run["run"])
        if there is None or there.mark != run["mark"]:
            return False
    if not all(any(_finished_run(folder / run) for folder in folders) for _, run in archive.runs_of(record)):
        return False
    return all(path.is_file() for path in pictures)


def _is_kept(place: layout.Place, document: Mapping[str, Any], request: ArchiveRequest) -> bool:
    """Return whether the archive has the figure with these settings and this budget."""
    id, _, scale = place.id.rpartition("/")
    kept = [one["document"] for one in archive.Archive.at(str(request.folder)).figures(id, scale)]
    return any(all(one.get(key) == document.get(key) for key in ("settings", "budget")) for one in kept)


def _finished_run(folder: Path) -> RunRecord | None:
    run = documents.read_record(folder / "run.json")
    return None if run is None or complaint(folder, run) else RunRecord(folder, run)


def _runs(
    places: Sequence[layout.Place], drawn_from: set[str], request: ArchiveRequest
) -> Iterator[layout.Place]:
    """Yield the runs of finished figures, and pieces of the others: runs that figures made for themselves."""
    pieces, arrays = set(), []
    for place in places:
        name = f"{layout.RUNS}/{place.id}/{place.fingerprint}"
        run = documents.read_record(place.path) or {}
        folder = place.path.parent
        if name in drawn_from:
            yield place
        elif not run.get("figure") or not request.wants(run["figure"]):
            continue
        elif run.get("status") in archive.UNFINISHED:
            if request.unfinished and _scale(folder, run) == request.scale:
                yield place
        elif complaint(folder, run) is None:
            config = RunRecord(folder, run).config
            if "settings" in config:
                arrays.append((place, run, config["settings"]))
            elif _scale(folder, run) == request.scale:
                pieces.add(place.fingerprint)
                yield place
    for place, run, settings in arrays:
        text = json.dumps(settings)
        if run.get("scale", "") == request.scale or any(piece in text for piece in pieces):
            yield place


def _scale(folder: Path, run: Mapping[str, Any]) -> str:
    return str(run.get("scale") or RunRecord(folder, run).config.get("scale", ""))


class _Records:
    """The records of an archive, to describe them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[str, dict[str, Any]] = {}
        self.figures: dict[str, dict[str, Any]] = {}
        self.checks: dict[str, dict[str, Any]] = {}
        for place in layout.walk(folder):
            where = place.path.relative_to(folder).as_posix()
            if place.kind == layout.RUNS:
                self.runs[where] = documents.read_record(place.path) or {}
            else:
                record = json_records.read(place.path)
                if record is not None:
                    (self.figures if place.kind == "figures" else self.checks)[where] = record
        documented = [*self.figures.values(), *self.checks.values()]
        made = [*self.runs.values(), *(record["provenance"] for record in documented)]
        self.commits = sorted({commit_of(one) for one in made if one.get("git")})
        self.dates = sorted(
            [
                *(str(run.get("ended") or run.get("started") or "") for run in self.runs.values()),
                *(_date(record) for record in documented),
            ]
        )

    @property
    def title(self) -> str:
        papers = sorted({where.split("/")[1] for where in (*self.figures, *self.checks, *self.runs)})
        return f"icl: records of {', '.join(papers)}"

    @property
    def description(self) -> str:
        unfinished = sum(run.get("status") in archive.UNFINISHED for run in self.runs.values())
        counts = {"figures": len(self.figures), "checks": len(self.checks)}
        counts |= {"runs": len(self.runs) - unfinished, "unfinished runs": unfinished}
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        by = ", ".join(map(short, self.commits)) or "unknown"
        return f"{said}, made by commit{'s' if len(self.commits) > 1 else ''} {by}."

    def crate(self) -> dict[str, Any]:
        """Return the manifest: an RO-Crate 1.1 with the SHA-256 of every file."""
        files = [path.relative_to(self.folder).as_posix() for path in archive.files_in(self.folder)]
        made = {**self.runs, **self.figures, **self.checks}
        sets = {self._id(where): (where, record) for where, record in made.items()}
        parts = [name for name in files if not any(name.startswith(id) for id in sets if id.endswith("/"))]
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": self.title,
            "description": self.description,
            "datePublished": self.dates[-1][:10] if self.dates else "",
            "license": {"@id": LICENSE},
            "hasPart": [{"@id": id} for id in sorted({*parts, *(id for id in sets if id.endswith("/"))})],
            "mentions": [{"@id": f"#made-{id}"} for id in sorted(sets)],
        }
        descriptor = {
            "@id": archive.MANIFEST,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": CONTEXT},
        }
        graph = [descriptor, root, {"@id": LICENSE, "@type": "CreativeWork", "name": "MIT License"}]
        graph += [self._file(name) for name in files]
        for id, (where, record) in sorted(sets.items()):
            graph += [self._set(id, record, files)] if id.endswith("/") else []
            graph.append(self._action(id, where, record))
        graph += [
            {
                "@id": f"#icl-{commit.replace(' ', '-')}",
                "@type": "SoftwareApplication",
                "name": "icl",
                "version": commit,
            }
            for commit in [*self.commits, "unknown"]
        ]
        return {"@context": [f"{CONTEXT}/context", TERMS], "@graph": graph}

    def _id(self, where: str) -> str:
        """Return the entity a record is: the folder of a run, the file of a figure or check."""
        return where.removesuffix("run.json") if where in self.runs else where

    def _file(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return {
            "@id": name,
            "@type": "File",
            "contentSize": str(path.stat().st_size),
            "encodingFormat": _ENCODING.get(path.suffix, "text/plain"),
            "sha256": sha256_of(path),
        }

    def _set(self, id: str, run: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
        about = f"{run.get('status')}, seeds {run.get('seeds', [])}"
        about += ", thinned" if run.get("thinned") else ""
        return {
            "@id": id,
            "@type": "Dataset",
            "name": f"{run.get('experiment')} {run.get('fingerprint')}",
            "description": about,
            "hasPart": [{"@id": name} for name in files if name.startswith(id)],
        }

    def _action(self, id: str, where: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return by which code, from what and when a record was made."""
        by = commit_of(record if where in self.runs else record["provenance"]).replace(" ", "-")
        sources = [run for _, run in archive.runs_of(record)] if where in self.figures else []
        when = str(record.get("ended") or record.get("started")) if where in self.runs else _date(record)
        found = {
            "@id": f"#made-{id}",
            "@type": "CreateAction",
            "name": f"made by icl, code digest {record.get('digest')}",
            "instrument": {"@id": f"#icl-{by}"},
            "result": {"@id": id},
            "endTime": when,
        }
        return found | ({"object": [{"@id": f"{run}/"} for run in dict.fromkeys(sources)]} if sources else {})

    def readme(self) -> str:
        lines = [f"# {self.title}", "", self.description, ""]
        thinned = sum("thinned" in run for run in self.runs.values())
        lines += [
            "Each record names the commit, the code digest, the versions and the machine it was made by. The",
            f"SHA-256 of every file is in `{archive.MANIFEST}` (RO-Crate 1.1).",
            "",
            "```",
            "icl verify FOLDER                                    # digests, exact numbers, a figure a paper",
            "icl figure figure=PAPER/FIG scale=SCALE from=FOLDER  # draws a figure from the records",
            "```",
            "",
            "| place | what |",
            "|---|---|",
            "| `runs/EXPERIMENT/FINGERPRINT/` | config, metrics, weights, verdicts and `run.json` of a "
            "training run, or arrays computed from one |",
            "| `figures/PAPER/FIG/SCALE/` | the record of a figure with its claims, its picture, its table |",
            "| `checks/PAPER/ID/` | the verdict of a check, with its numbers |",
            "",
            f"Of a training run with more than {archive.LARGE_FILE >> 20} MB of weights every "
            f"{archive.EVERY}th stored step is kept, with the first and the last, of one with more than "
            f"{archive.LARGEST_FILE >> 20} MB none; computed arrays of more than "
            f"{archive.LARGE_ARRAY:,} numbers are rounded to {archive.BITS + 1} significant bits. "
            f"`thinned` in a run.json says so ({thinned} runs here). Final weights and all other numbers are "
            "kept to the bit.",
        ]
        for record in self.figures.values():
            lines += _about_figure(record)
        if self.checks:
            lines += ["", "## Checks", "", "| check | verdict |", "|---|---|"]
            documents_of = [record["document"] for record in self.checks.values()]
            lines += [f"| {document['check']} | {outcome(document)} |" for document in documents_of]
        left = [run for run in self.runs.values() if run.get("status") in archive.UNFINISHED]
        if left:
            lines += ["", "## Unfinished runs", ""]
            lines += [
                f"- {run['experiment']}/{run['fingerprint']}, by code digest {run['digest']}: goes on from "
                "its checkpoint with `from=`, under the code that began it"
                for run in left
            ]
        return "\n".join(lines) + "\n"


def _about_figure(record: Mapping[str, Any]) -> list[str]:
    document = record["document"]
    title = f"## {document['figure']} at {archive.scale_of(document)}"
    lines = ["", title, "", document["caption"], "", "| claim | verdict | measured |", "|---|---|---|"]
    for claim in document["claims"]:
        cells = (claim["claim"], outcome(claim), brief(claim["measured"]))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, "", f"*Commit {short(commit_of(record['provenance']))}, {_date(record)[:10]}.*"]


def _date(record: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(record["written"], UTC).isoformat(timespec="seconds")
