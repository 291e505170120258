"""Checks and figures told to W&B: one run each, grouped by paper and scale, whose id says what it is of.

Offline what has been told is noted in OUTPUTS/cache/told, after the run has been closed; a server is told
again each time, since what it has is not known. W&B is a sink: where it fails, the record is there anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from icl.errors import one_line
from icl.runs.fingerprint import fingerprint
from icl.sinks.sink import LoggerSettings, Sink
from icl.sinks.wandb_sink import open_sink


@dataclass(frozen=True)
class Story:
    """What is to be told of one document, and where."""

    logger: LoggerSettings
    outputs: Path
    job_type: str  # check | figure
    id: str
    scale: str
    run_id: str
    document: Mapping[str, Any]

    def is_told(self) -> bool:
        if self.logger.mode == "none":
            return True
        there = any((self.outputs / "wandb").glob(f"offline-run-*-{self.run_id}"))
        return self.logger.mode == "offline" and there and self._note.exists()

    def tell(self, config: Mapping[str, Any], say: Callable[[Sink], None]) -> None:
        """Unless it is told already."""
        if self.is_told():
            return
        paper = self.id.partition("/")[0]
        identity: dict[str, Any] = {
            "group": f"{paper}-{self.scale}",
            "job_type": self.job_type,
            "run_id": self.run_id,
            "name": f"{self.id} {self.scale}",
            "tags": (paper, self.scale),
        }
        try:
            with open_sink(self.logger, outputs=self.outputs, config=dict(config), **identity) as sink:
                say(sink)
            self._note.parent.mkdir(parents=True, exist_ok=True)
            self._note.touch()
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            print(f"icl: {self.id}: W&B has failed ({reason}); the record is kept", file=sys.stderr)

    @property
    def _note(self) -> Path:
        document = {k: v for k, v in self.document.items() if k != "cached"}
        what = fingerprint({"logger": asdict(self.logger), "document": document})
        return self.outputs / "cache" / "told" / f"{self.run_id}-{what}"
