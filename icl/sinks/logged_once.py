"""Records told to W&B: one run each, whose id says what it is of.

Offline what has been told is noted in OUTPUTS/cache/told, once W&B's own file is seen to hold it; a server
is told again each time, since what it has is not known. W&B is a sink: where it fails, the record is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from icl.config.logger import LoggerSettings, under_agent
from icl.runs.fingerprint import fingerprint
from icl.runs.lock import Lock
from icl.sinks.safe import SafeSink, Say
from icl.sinks.sink import Sink
from icl.sinks.wandb_file import held_within
from icl.sinks.wandb_sink import open_sink

WRITTEN_WITHIN = 5.0  # seconds; a note that is not left costs no more than telling again


@dataclass(frozen=True)
class LoggedOnce:
    """Marker that W&B's run `run_id` holds `content`."""

    logger: LoggerSettings
    outputs: Path
    run_id: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def is_there(self) -> bool:
        """Return whether W&B already has this content."""
        if self.logger.mode == "none" and not self.logger.lightning:
            return True
        to_wandb = self.logger.mode != "none"
        return self.logger.mode != "online" and (bool(self._logs) or not to_wandb) and self._path.exists()

    def leave(self, say: Say) -> None:
        """Write the marker once W&B's file is verified."""
        if self.logger.mode == "online":
            return
        try:
            if self.logger.mode == "offline" and not held_within(WRITTEN_WITHIN, self._logs):
                raise OSError("records are missing, as after a kill or on a full disk")
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            where = f"{self.outputs / 'wandb'}, run {self.run_id}"
            say(f"icl: {where}: W&B's copy is not whole ({error}); it is told again next time")

    @contextlib.contextmanager
    def alone(self, say: Say) -> Iterator[None]:
        """One process at a time tells W&B of this run, where there is a place to agree on it."""
        lock = Lock(self.outputs / "cache" / "told" / f"{self.run_id}.lock")
        with contextlib.suppress(OSError):
            lock.acquire(say)
        try:
            yield
        finally:
            lock.release()

    @property
    def _logs(self) -> list[Path]:
        """Oldest first: a folder's name begins with its time."""
        return sorted((self.outputs / "wandb").glob(f"offline-run-*-{self.run_id}/run-{self.run_id}.wandb"))

    @property
    def _path(self) -> Path:
        what = fingerprint({"logger": asdict(self.logger), "content": self.content})
        return self.outputs / "cache" / "told" / f"{self.run_id}-{what}"


@dataclass(frozen=True)
class DocumentLogger:
    """A check's or a figure's document as it goes to W&B, in its `group` or that of its paper and scale."""

    logger: LoggerSettings
    outputs: Path
    kind: str  # check | figure
    id: str
    scale: str
    identity: str
    document: Mapping[str, Any] = field(repr=False)
    group: str = ""

    @property
    def note(self) -> LoggedOnce:
        content = {k: v for k, v in self.document.items() if k != "cached"}
        run_id = f"{self.kind}-{self.id.replace('/', '-')}-{self.identity}"
        return LoggedOnce(
            replace(self.logger, lightning={}), self.outputs, run_id, content
        )  # they are for runs

    def tell(self, config: Mapping[str, Any], write: Callable[[Sink], None], say: Say) -> None:
        """Unless it is told already."""
        note, paper = self.note, self.id.partition("/")[0]
        if note.is_there:
            return
        with note.alone(say):
            self._tell(note, paper, config, write, say)

    def _tell(
        self, note: LoggedOnce, paper: str, config: Mapping[str, Any], write: Callable[[Sink], None], say: Say
    ) -> None:
        if note.is_there:  # somebody else has told it meanwhile
            return
        opened = open_sink(
            self.logger,
            outputs=self.outputs,
            group=self.group or f"{paper}-{self.scale}",
            job_type=self.kind,
            run_id=note.run_id,
            name=f"{self.id} {self.scale}",
            config=dict(config),
            say=say,
            tags=(paper, self.scale),
        )
        sink = SafeSink(opened, f"{self.id}: W&B", say, strict=under_agent())
        with sink as taking:
            write(taking)
        if not sink.has_failed:
            note.leave(say)
