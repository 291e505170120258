"""What a figure was drawn from, noted, so that it is found again without its experiment.

An experiment decides which runs a figure needs, and must be built and asked to tell; that takes seconds.
Its answer can only change with the figure's settings, the scale, a config or the code, and these name the
note: OUTPUTS/cache/figures/KEY.json. The note says which runs the figure had and under what its record is
filed. It is a shortcut: without one, or where a run is no longer as it was, the experiment is asked.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import icl
from icl.cli.hydra_app import config_folders
from icl.config import allowed_packages, by_content
from icl.errors import InputError
from icl.runs import atomic, documents
from icl.runs.code import places
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord, find_done
from icl.sinks.sink import LoggerSettings

_NOT_THE_USERS = ("icl", "torch", "pytorch_lightning")


class Note:
    """The note on one figure, of which `id`, `scale` and `settings` are all that is known."""

    def __init__(
        self, outputs: Path, id: str, scale: str, settings: Mapping[str, Any], logger: LoggerSettings
    ) -> None:
        # What has been told to a server is not known, so a figure is never all done there; and what lies
        # under a path in its settings, such as a language model, may have changed.
        self.counts = logger.mode != "online" and not _names_a_place(settings)
        self.outputs = outputs
        identity = {"figure": id, "scale": scale, "settings": by_content(settings), "logger": asdict(logger)}
        identity["text"] = json.dumps(settings, sort_keys=True)  # 5 is not 5.0, which validation may refuse
        self.path = outputs / "cache" / "figures" / f"{fingerprint(identity | {'code': _everything()})}.json"

    def read(self) -> tuple[str, str] | None:
        """Fingerprint and digest of the figure's record, if every run it was drawn from is still there."""
        note = documents.read_json(self.path) if self.counts else None
        if note is None or not all(map(_is_as_noted, note["runs"])):
            return None
        told = all((self.outputs / "wandb" / name).is_dir() for name in note["told"])
        return (note["fingerprint"], note["digest"]) if told else None

    def write(self, mark: str, digest: str, records: Mapping[str, RunRecord]) -> None:
        if not self.counts or any(_names_a_file(record.config) for record in records.values()):
            return
        runs = [
            {"path": record.path, "digest": record.run["digest"], "attempt": record.run["attempt"]}
            for record in records.values()
        ]
        ids = [f"{record.run['fingerprint']}-{record.run['attempt']}" for record in records.values()]
        told = [folder.name for id in ids for folder in (self.outputs / "wandb").glob(f"offline-run-*-{id}")]
        with atomic.writing(self.outputs):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            document = {"fingerprint": mark, "digest": digest, "runs": runs, "told": told}
            documents.write_json(self.path, document)


def _is_as_noted(noted: Mapping[str, Any]) -> bool:
    path = Path(noted["path"])
    record = find_done(path, noted["digest"])
    return record is not None and record.path == path and record.run["attempt"] == noted["attempt"]


def _texts(node: Any) -> Iterator[str]:
    """Every string of nested settings."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        yield from (text for value in node.values() for text in _texts(value))
    elif isinstance(node, list | tuple):
        yield from (text for value in node for text in _texts(value))


def _names_a_place(settings: Any) -> bool:
    """Whether a setting is a file or folder that is there."""
    return any("/" in text and Path(text).expanduser().exists() for text in _texts(settings))


def _names_a_file(config: Any) -> bool:
    """A matrix in a file of its own can change without the config."""
    return any(text.endswith(".npy") for text in _texts(config))


@functools.cache
def _everything() -> str:
    """Digest of all code and all configs, ours and the user's."""
    digest = hashlib.sha256()
    for path, name in sorted(_files(), key=lambda file: (file[1], file[0])):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files() -> Iterator[tuple[Path, str]]:
    own = Path(icl.__file__).parent
    yield from ((path, path.relative_to(own).as_posix()) for path in own.rglob("*.py"))
    for folder in config_folders():
        yield from ((path, path.relative_to(folder).as_posix()) for path in folder.rglob("*.yaml"))
    for package in allowed_packages():
        if package.partition(".")[0] not in _NOT_THE_USERS:
            with contextlib.suppress(InputError):  # not there: nothing can come from it
                for place in places(package.partition(".")[0]):
                    files = place.rglob("*.py") if place.is_dir() else [place]
                    yield from ((path, path.name) for path in files)
