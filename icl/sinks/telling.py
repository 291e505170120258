"""Records told to W&B: one run each, whose id says what it is of.

Offline what has been told is noted in OUTPUTS/cache/told, after the run has been closed; a server is told
again each time, since what it has is not known. W&B is a sink: where it fails, the record is there anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from icl.config.logger import LoggerSettings
from icl.errors import one_line
from icl.runs.fingerprint import fingerprint
from icl.sinks.sink import Sink
from icl.sinks.wandb_sink import open_sink


@dataclass(frozen=True)
class Note:
    """That W&B's run `run_id` holds `content`."""

    logger: LoggerSettings
    outputs: Path
    run_id: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def is_there(self) -> bool:
        """Whether there is nobody left to tell."""
        if self.logger.mode == "none":
            return True
        written = any((self.outputs / "wandb").glob(f"offline-run-*-{self.run_id}"))
        return self.logger.mode == "offline" and written and self._path.exists()

    def leave(self) -> None:
        if self.logger.mode == "offline":
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()

    @property
    def _path(self) -> Path:
        what = fingerprint({"logger": asdict(self.logger), "content": self.content})
        return self.outputs / "cache" / "told" / f"{self.run_id}-{what}"


@dataclass(frozen=True)
class Story:
    """A check's or a figure's document as it goes to W&B, grouped by paper and scale."""

    logger: LoggerSettings
    outputs: Path
    kind: str  # check | figure
    id: str
    scale: str
    identity: str
    document: Mapping[str, Any] = field(repr=False)

    @property
    def note(self) -> Note:
        content = {k: v for k, v in self.document.items() if k != "cached"}
        run_id = f"{self.kind}-{self.id.replace('/', '-')}-{self.identity}"
        return Note(self.logger, self.outputs, run_id, content)

    def tell(
        self, config: Mapping[str, Any], write: Callable[[Sink], None], say: Callable[[str], None]
    ) -> None:
        """Unless it is told already."""
        note, paper = self.note, self.id.partition("/")[0]
        if note.is_there:
            return
        labels: dict[str, Any] = {
            "group": f"{paper}-{self.scale}",
            "job_type": self.kind,
            "run_id": note.run_id,
            "name": f"{self.id} {self.scale}",
            "tags": (paper, self.scale),
        }
        try:
            with open_sink(self.logger, outputs=self.outputs, config=dict(config), **labels) as sink:
                write(sink)
            note.leave()
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            say(f"icl: {self.id}: W&B has failed ({reason}); the record is kept")
