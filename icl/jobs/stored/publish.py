"""`icl publish`: page, figures, records and an archive as one static site, with a page for each claim."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.config.values import flatten, literal
from icl.digests import sha256_of
from icl.errors import InputError
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Found
from icl.jobs.stored import catalog, report
from icl.jobs.stored.archive import ArchiveRequest, write_archive
from icl.report import drawings, logbook
from icl.report.claim_pages import OtherSettings, claim_pages, write_claim_pages
from icl.report.content import ReportContent
from icl.report.page import write_report
from icl.runs import atomic, json_records, layout

MANIFEST = "site.json"


@dataclass(frozen=True)
class PublishRequest:
    """Request to publish records of `outputs` in `folder`: the papers `only`, all if empty; at one scale."""

    folder: Path
    outputs: Path
    only: tuple[str, ...]
    scale: str
    with_archive: bool
    configs: ConfigDirs
    with_logbook: bool = False


def publish(request: PublishRequest) -> dict[str, Any]:
    """Write the site, or write it anew; return its document."""
    catalog.validate_papers(request.only, request.configs)
    folder = request.folder
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, must be a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise InputError(f"{folder}: is not empty and no site of icl")
    session = Session(request.outputs, configs=request.configs)
    content = report.stored_content(report.ReportRequest(request.scale, request.only), session)
    others = list(_at_other_settings(content, request, session))
    is_there = any(entry.document is not None for entry in content.entries)
    if not is_there and all(other.settings.startswith("scale=") for other in others):
        raise InputError(f"scale={request.scale}: nothing finished in {request.outputs}")
    with atomic.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).touch()  # from here on a site, also where it is interrupted
        write_report(folder, content)
        for old in (folder / drawings.FOLDER).glob("*"):
            if layout.is_fingerprint(old.name):  # of records at other settings
                shutil.rmtree(old)
        pages = claim_pages(folder, content, others)
        write_claim_pages(folder, content, pages)
        shutil.rmtree(folder / logbook.FOLDER, ignore_errors=True)
        if request.with_logbook:
            logbook.write_logbook(folder, pages)
        if request.with_archive and is_there:
            wanted = (
                folder / "archive",
                request.outputs,
                request.only,
                request.scale,
                False,
                request.configs,
            )
            write_archive(ArchiveRequest(*wanted))
        (folder / ".nojekyll").touch()  # a forge's pages then serve every file as it is
        files = {
            path.relative_to(folder).as_posix(): sha256_of(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / MANIFEST
        }
        atomic.write_bytes(folder / MANIFEST, (json.dumps({"files": files}, indent=1) + "\n").encode())
    return {
        "folder": str(folder),
        "files": list(files),
        "sha256": sha256_of(folder / MANIFEST),
        "claims": len(pages),
    }


def _at_other_settings(
    content: ReportContent, request: PublishRequest, session: Session
) -> Iterator[OtherSettings]:
    """Yield the finished checks and figures that the report does not show, with what makes them others."""
    blank = {(entry.group, entry.id): entry for entry in content.entries}
    shown = {(entry.group, entry.id, entry.record.get("fingerprint")) for entry in content.entries}
    for place in layout.walk(request.outputs):
        if place.kind == layout.RUNS:
            continue
        group, id, scale = place.kind.removesuffix("s"), place.id, request.scale
        if group == "figure":
            id, _, scale = id.rpartition("/")
        entry, record = blank.get((group, id)), json_records.read(place.path)
        if entry is None or (group, id, place.fingerprint) in shown or record is None:
            continue
        if json_records.complaint(record, None) is not None:
            continue
        settings = record["document"]["settings"]
        if group == "check":
            scale = next(iter(catalog.scales_of(id, settings, request.configs)), scale)
        own = flatten(parse_named(group, id, [f"scale={scale}"], request.configs)[0].settings)  # type: ignore[attr-defined]
        changed = [
            f"{group}.{key}={literal(value)}"
            for key, value in flatten(settings).items()
            if key not in own or own[key] != value
        ]
        words = [f"scale={scale}"] * (scale != request.scale)
        if not words and not changed:
            continue  # the report shows the record that these settings have today
        try:
            found = parse_named(group, id, [f"scale={scale}", *changed], request.configs)[0].lookup(session)
        except InputError:
            found = None
        command = entry.command.replace(f"scale={request.scale}", f"scale={scale}")
        command = " ".join([command, *map(shlex.quote, changed)])
        if found is None or found.path != place.path:  # no override of today's config leads to it
            found = Found(record["document"], place.path, record, "its config has changed since")
            command = ""
        yield OtherSettings(
            report.with_result(replace(entry, command=command), found), " ".join([*words, *changed])
        )
