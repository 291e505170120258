"""Log each record to W&B once, as one W&B run whose id names the record.

Offline a marker in OUTPUTS/cache/logged says what has been logged; a server gets it again each time, since
what it has is not known. Where W&B fails, the record is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from icl.config.logger import LoggerSettings, under_agent
from icl.loggers.run_log import DocumentLog
from icl.loggers.safe import Notify, SafeLogger
from icl.loggers.wandb_run import open_wandb
from icl.runs.fingerprint import fingerprint
from icl.runs.lock import Lock


@dataclass(frozen=True)
class LoggedOnce:
    """Marker that the loggers hold `content` as run `run_id`."""

    logger: LoggerSettings
    outputs: Path
    run_id: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def is_there(self) -> bool:
        """Return whether there is nothing to log, or it is logged already."""
        if self.logger.mode == "none":
            return not self.logger.lightning or self._path.exists()
        return self.logger.mode == "offline" and self._has_offline_run() and self._path.exists()

    def leave(self) -> None:
        """Write the marker. To be called once the loggers have closed without an error."""
        if self.logger.mode == "online":
            return
        with contextlib.suppress(OSError):  # it is logged again then
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()

    @contextlib.contextmanager
    def alone(self, notify: Notify) -> Iterator[None]:
        """Let one process at a time log this run, where there is a place to agree on it."""
        lock = Lock(self._path.with_name(f"{self.run_id}.lock"))
        with contextlib.suppress(OSError):
            lock.acquire(notify)
        try:
            yield
        finally:
            lock.release()

    def _has_offline_run(self) -> bool:
        files = (self.outputs / "wandb").glob(f"offline-run-*-{self.run_id}/run-{self.run_id}.wandb")
        return next(files, None) is not None

    @property
    def _path(self) -> Path:
        content = fingerprint({"logger": asdict(self.logger), "content": self.content})
        return self.outputs / "cache" / "logged" / f"{self.run_id}-{content}"


@dataclass(frozen=True)
class DocumentLogger:
    """Logger of the document of a check, a figure or a sweep, in W&B's `group` or that of its paper and
    scale."""

    logger: LoggerSettings
    outputs: Path
    kind: str  # check | figure | sweep
    id: str
    name: str
    scale: str
    identity: str
    document: Mapping[str, Any] = field(repr=False)
    group: str = ""

    @property
    def marker(self) -> LoggedOnce:
        content = {k: v for k, v in self.document.items() if k != "cached"}
        run_id = f"{self.kind}-{self.id.replace('/', '-')}-{self.identity}"
        wandb_alone = replace(self.logger, lightning={})  # Lightning's loggers are for runs
        return LoggedOnce(wandb_alone, self.outputs, run_id, content)

    def log(self, config: Mapping[str, Any], write: Callable[[DocumentLog], None], notify: Notify) -> None:
        """Log the document, unless it is logged already."""
        marker, paper = self.marker, self.id.partition("/")[0]
        if marker.is_there:
            return
        with marker.alone(notify):
            if marker.is_there:  # another process has logged it in the meantime
                return
            opened = open_wandb(
                self.logger,
                outputs=self.outputs,
                group=self.group or f"{paper}-{self.scale}",
                job_type=self.kind,
                run_id=marker.run_id,
                name=self.name,
                config=dict(config),
                notify=notify,
                tags=(paper, self.scale),
            )
            guarded = SafeLogger(opened, f"{self.id}: W&B", notify, strict=under_agent())
            with guarded as log:
                if log is not None:
                    write(log)
            if not guarded.has_failed:
                marker.leave()
