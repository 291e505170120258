"""`icl publish`: page, figures, records and an archive as one static site, with a page for each claim."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.digests import sha256_of
from icl.errors import InputError
from icl.jobs.stored import catalog, report
from icl.jobs.stored.archive import ArchiveRequest, write_archive
from icl.report.claim_pages import write_claim_pages
from icl.report.page import write_report
from icl.runs import atomic

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
    if not any(entry.document is not None for entry in content.entries):
        raise InputError(f"scale={request.scale}: nothing finished in {request.outputs}")
    with atomic.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).touch()  # from here on a site, also where it is interrupted
        write_report(folder, content)
        claims = write_claim_pages(folder, content)
        if request.with_archive:
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
        "claims": len(claims) - 1,
    }
