"""Renew docs/records from an outputs folder: `scripts/docs.sh records [OUTPUTS]` after `icl reproduce`.

Finished records of the current code at laptop scale replace the stored ones, with their date and commit; the
others stay as they are; records of checks and figures that no longer exist are dropped. The pages of the docs
are rendered from these files alone. The pictures of figures that a page shows are renewed, too.

`scripts/docs.sh records OUTPUTS --paper-scale` keeps what was made at scale=paper instead: it writes or
extends an archive for each paper, docs/records/paper/PAPER (icl archive), runs of unfinished figures too,
and renews the pictures of its figures. What is in an archive stays, with its commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError
from icl.jobs.execution.plan import plan_parts
from icl.jobs.stored.archive import ArchiveRequest, write_archive
from icl.jobs.stored.report import SKIPPED, ReportRequest
from icl.report.content import ReportEntry
from icl.runs.documents import read_json

RECORDS = Path(__file__).parents[1] / "docs" / "records"
PLURAL = {"check": "checks", "figure": "figures"}
CHECK = (
    "reference", "claim", "verdict", "expected", "settings", "measured", "kinds", "meanings", "routes",
    "bound", "control", "remarks", "sentence", "control_sentence",
)  # fmt: skip
CLAIM = ("claim", "measured", "kind", "bound", "verdict", "expected", "remarks")


def document_of(entry: ReportEntry) -> dict[str, Any]:
    """Return what the docs show of a finished check or figure."""
    document, made_by = entry.document or {}, entry.record["provenance"]
    git, hardware = made_by["git"], made_by["hardware"]
    made = {"date": entry.record["date"].split()[0], "commit": git["commit"], "dirty": git["dirty"]}
    made |= {"seconds": document["seconds"], "machine": f"{hardware['cpu']}, {hardware['cores']} cores"}
    if entry.group == "check":
        return {key: document[key] for key in CHECK if key in document} | made
    claims = [{key: claim[key] for key in CLAIM if key in claim} for claim in document["claims"]]
    about = {"reference": entry.reference, "scale": document["scale"], "claims": claims}
    return about | {"caption": document.get("caption", ""), **made}


def of_paper(
    entries: Sequence[ReportEntry], before: Mapping[str, Any], skipped: Mapping[str, str]
) -> dict[str, Any]:
    """Return the finished records of a paper, and those of `before` where there is no new one."""
    documents: dict[str, Any] = {plural: {} for plural in PLURAL.values()}
    for entry in entries:
        plural = PLURAL[entry.group]
        if entry.state == "done":
            documents[plural][entry.id] = document_of(entry)
        elif entry.id in before.get(plural, {}):
            documents[plural][entry.id] = before[plural][entry.id]
        elif reason := skipped.get(f"{entry.group} {entry.id}"):
            documents[plural][entry.id] = {"reference": entry.reference, "skipped": reason}
    return documents


def renew_picture(entry: ReportEntry) -> None:
    """Copy the picture of a figure that a page shows as docs/img/PAPER-FIG.png."""
    shown = RECORDS.parent / "img" / f"{entry.id.replace('/', '-')}.png"
    if entry.group == "figure" and entry.state == "done" and shown.is_file():
        shutil.copyfile((entry.document or {})["files"]["png"], shown)


def renew_paper_scale(outputs: Path) -> None:
    records = [*outputs.glob("runs/*/*"), *outputs.glob("figures/*/*")]
    for paper in sorted({path.parent.name for path in records}):
        archive = RECORDS / "paper" / paper
        request = ArchiveRequest(archive, outputs, (paper,), "paper", configs=ConfigDirs.of(None))
        try:
            written = write_archive(request)
        except InputError as error:
            print(f"{paper}: {error}")
            continue
        print(f"{archive}: {len(written['new'])} records new, {written['bytes'] / 1e6:.1f} MB")
        for path in sorted(archive.glob("figures/*/*/paper/*.png")):
            picture = RECORDS.parent / "img" / "paper" / f"{paper}-{path.parents[1].name}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outputs", nargs="?", default="outputs", type=Path)
    parser.add_argument("--paper-scale", action="store_true")
    given = parser.parse_args()
    outputs: Path = given.outputs.absolute()
    if not outputs.is_dir():
        parser.error(f"{outputs}: no such folder")
    if given.paper_scale:
        return renew_paper_scale(outputs)
    session = Session(outputs, configs=ConfigDirs.of(None))
    entries = sorted(
        (part.entry for part in plan_parts(ReportRequest("laptop"), session)), key=lambda entry: entry.id
    )
    for entry in entries:
        renew_picture(entry)
    RECORDS.mkdir(exist_ok=True)
    for paper in dict.fromkeys(entry.paper for entry in entries):
        path = RECORDS / f"{paper}.json"
        mine = [entry for entry in entries if entry.paper == paper]
        documents = of_paper(mine, read_json(path) or {}, read_json(outputs / SKIPPED) or {})
        path.write_text(json.dumps(documents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        done = sum(entry.state == "done" for entry in mine)
        others = sum(map(len, documents.values())) - done
        print(f"{path.name}: {done} found in {outputs}, {others} kept or skipped")


if __name__ == "__main__":
    main()
