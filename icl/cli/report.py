"""`icl report`: the page of what is stored at one scale. Nothing is measured or drawn, no check is imported.

`icl reproduce` collects its own entries and uses `blanks`, `book` and `write`.
"""

from __future__ import annotations

import datetime
import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig

from icl.cli import hydra_app
from icl.cli.listing import listing
from icl.cli.outcome import OK, Outcome
from icl.cli.verdicts import roots_of
from icl.config import common_settings, conf_dir, file_digest, plain
from icl.errors import InputError, nearest
from icl.report.book import Book, Entry, Paper
from icl.runs import atomic
from icl.runs.code import DRAWING, code_digest, targets, todays_digest
from icl.runs.documents import read_json, to_json
from icl.runs.json_records import complaint
from icl.runs.provenance import provenance

OWN = ("only",)
SKIPPED = "cache/skipped.json"  # {"figure ID": why the last reproduce skipped it}
GROUPS = {"check": "checks", "figure": "figures"}  # and the key `icl list` has them under
NOT_RUN = "not run"
_REPLACED = ("cached", "expected", "settings")  # of a stored document, by what was asked for


def report_job(cfg: DictConfig) -> Outcome:
    started = time.monotonic()
    outputs, scale, only = settings_of(cfg)
    entries = entries_found(scale, outputs, only)
    told = book(entries, scale, outputs)
    path = _written(told, outputs)
    shown = {group: sum(e.group == group and e.document is not None for e in entries) for group in GROUPS}
    document = {
        "report": path,
        "checks": shown["check"],
        "figures": shown["figure"],
        "seconds": time.monotonic() - started,
    }
    return Outcome(document, OK, lambda: _show(path, told))


def settings_of(cfg: DictConfig) -> tuple[Path, str, list[str]]:
    """Outputs folder, scale and papers, validated."""
    outputs = common_settings(cfg, "report", OWN)
    only = plain(cfg.only)
    only = [only] if isinstance(only, str) else list(only or [])
    known = sorted({entry.paper for entry in blanks(str(cfg.scale))})
    for paper in only:
        if paper not in known:
            listed = f"{nearest(str(paper), known)} (one of: {', '.join(known)})"
            raise InputError(f"only={paper}: no such paper{listed}")
    return outputs, str(cfg.scale), only


def entries_found(scale: str, outputs: Path, only: Sequence[str] = ()) -> list[Entry]:
    """Every check and figure there is, with its record at this scale where there is one."""
    wanted = [entry for entry in blanks(scale) if not only or entry.paper in only]
    return [_found(entry, scale, outputs) for entry in wanted]


def blanks(scale: str) -> list[Entry]:
    """Every check and figure there is, shipped or the user's own, as one that has not run."""
    items = listing(os.devnull, hydra_app.config_folders()[1:])
    return [_blank(group, item, scale) for group, key in GROUPS.items() for item in items[key]]


def papers(ids: Iterable[str]) -> list[Paper]:
    """Titles and links from conf/paper/ID.yaml, the user's folder first; a paper without one is its id."""
    return [_paper(id) for id in dict.fromkeys(ids)]


def book(entries: Sequence[Entry], scale: str, outputs: Path) -> Book:
    """`entries` with their papers and the provenance of their records."""
    written = _time(time.time())
    told = [
        e if e.record or e.document is None else replace(e, record=_record_of(e, outputs)) for e in entries
    ]
    return Book(scale, papers(e.paper for e in entries), told, {**provenance(), "written": written})


def write(entries: Sequence[Entry], scale: str, outputs: Path) -> Path:
    """The page of `entries`, OUTPUTS/report/index.html."""
    return _written(book(entries, scale, outputs), outputs)


def _written(told: Book, outputs: Path) -> Path:
    from icl.report.page import write_report

    with atomic.writing(outputs):
        return write_report(outputs / "report", told)


def _show(path: Path, told: Book) -> None:
    from icl.report.page import summary

    missing = sum(entry.document is None for entry in told.entries)
    rest = f" {missing} of {len(told.entries)} checks and figures have no result." if missing else ""
    print(f"{summary(told)}{rest}".strip())
    print(path)


def _blank(group: str, item: Mapping[str, Any], scale: str) -> Entry:
    id = item["id"]
    words = ["icl", group, f"{group}={id}", f"scale={scale}"]
    given = ""
    if not (conf_dir() / group / f"{id}.yaml").is_file():  # the user's own
        words[2:2] = ["--config-dir", str(hydra_app.config_folders()[-1])]
        given = os.environ.get("ICL_PACKAGES", "")
    command = f"{f'ICL_PACKAGES={shlex.quote(given)} ' if given else ''}{shlex.join(words)}"
    return Entry(group, id, item["paper"], item["reference"], command)


def _paper(id: str) -> Paper:
    for folder in reversed(hydra_app.config_folders()):
        path = folder / "paper" / f"{id}.yaml"
        if path.is_file():
            try:
                told = yaml.safe_load(path.read_text(encoding="utf-8"))
                return Paper(id, **{key: str(value) for key, value in told.items()})
            except (yaml.YAMLError, AttributeError, TypeError):
                raise InputError(f"{path}: must have title, and may have citation and link") from None
    return Paper(id, id)


def _found(entry: Entry, scale: str, outputs: Path) -> Entry:
    find = _check_found if entry.group == "check" else _figure_found
    try:
        found = find(entry, scale, outputs)
    except InputError as error:  # a config that cannot be composed does not hide the others
        return replace(entry, state="failed", reason=str(error))
    if found is not None:
        return found
    skipped = (read_json(outputs / SKIPPED) or {}).get(f"{entry.group} {entry.id}")
    return replace(entry, state="skipped", reason=skipped) if skipped else replace(entry, reason=NOT_RUN)


def _check_found(entry: Entry, scale: str, outputs: Path) -> Entry | None:
    """The record with the settings of this scale, of today's code if there is one."""
    records = list(_records(outputs / "checks" / entry.id))
    if not records:  # to compose settings takes as long as all else together
        return None
    node = plain(hydra_app.compose("check", [f"check={entry.id}", f"scale={scale}"]).check)
    expected, digest = node.pop("expected", "holds"), code_digest(roots_of(node))
    del node["_target_"]
    asked = json.dumps(to_json(node), sort_keys=True)
    best = None
    for path, record in records:
        document = record["document"]
        if json.dumps(document.get("settings"), sort_keys=True) == asked:
            why = complaint(record, digest)
            found = _with(entry, {**document, "expected": expected, "cached": True}, path, record, why)
            if why is None:
                return found
            best = best or found
    return best


def _figure_found(entry: Entry, scale: str, outputs: Path) -> Entry | None:
    """The newest record drawn with the shipped settings, which alone has the figure's plain name."""
    folder, name = outputs / "figures" / entry.id / scale, entry.id.rpartition("/")[2]
    for path, record in _records(folder):
        document = record["document"]
        files = {extension: folder / Path(file).name for extension, file in document["files"].items()}
        if "png" in files and files["png"].stem == name:
            document = {**document, "files": to_json(files), "cached": True}
            node = plain(hydra_app.compose("figure", [f"figure={entry.id}", f"scale={scale}"]).figure)
            return _with(entry, document, path, record, _figure_complaint(node, record, files, outputs))
    return None


def _figure_complaint(
    node: Mapping[str, Any], record: Mapping[str, Any], files: Mapping[str, Path], outputs: Path
) -> str | None:
    """Why the figure would be drawn anew: files, runs or code are others than today's."""
    for extension, path in files.items():
        if not path.is_file() or file_digest(path) != record["document"]["contents"][extension]:
            return f"its {extension} file is gone or was changed"
    asked = {**record, "code": [*targets(node), *DRAWING]}
    return complaint(record, todays_digest(asked, outputs))


def _with(
    entry: Entry, document: Mapping[str, Any], path: Path, record: Mapping[str, Any], why: str | None
) -> Entry:
    told = _told(path, record, document)
    return replace(entry, state="stale" if why else "done", reason=why or "", document=document, record=told)


def _record_of(entry: Entry, outputs: Path) -> dict[str, Any]:
    """Of the record that holds this very document; {} where none does."""
    document = entry.document or {}
    folder = outputs / GROUPS[entry.group] / entry.id
    if entry.group == "figure":
        folder = folder / str(document.get("scale"))
    wanted = _kept(to_json(document))
    for path, record in _records(folder):
        if _kept(record["document"]) == wanted:
            return _told(path, record, document)
    return {}


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _REPLACED}


def _told(path: Path, record: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says of a record beside its document."""
    runs = [read_json(Path(run) / "run.json") or {} for run in document.get("runs") or []]
    settings = document.get("settings") or {}
    seeds = [settings["seed"]] if "seed" in settings else [s for run in runs for s in run.get("seeds", [])]
    return {
        "fingerprint": record.get("fingerprint"),
        "date": _time(record.get("written") or path.stat().st_mtime),
        "provenance": record.get("provenance"),
        "seeds": list(dict.fromkeys(seeds)),
        "training_seconds": sum(run.get("seconds") or 0.0 for run in runs) if runs else None,
    }


def _records(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Readable records, newest first."""
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in paths:
        record = read_json(path)
        if record is not None and isinstance(record.get("document"), dict):
            yield path, record


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
