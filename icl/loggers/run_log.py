"""The interface that documents and runs are logged through. A logger is never the source of a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

Pictures = Iterable[tuple[str, bytes]]  # a caption and a PNG each, drawn when taken


class CurveLog(Protocol):
    """An open run of a logger: W&B's, or one of Lightning's."""

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Log curves at a step, which never decreases."""

    def log_hyperparams(self, values: dict[str, Any]) -> None: ...

    def images(self, step: int, name: str, pictures: Pictures) -> None: ...

    def fail(self) -> None:
        """End the run as failed."""

    def lightning_logger(self) -> Logger:
        """Return Lightning's logger to this run, for what callbacks log."""


class DocumentLog(Protocol):
    """An open W&B run, for documents and for the end of a run."""

    def images(self, step: int, name: str, pictures: Pictures) -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def model(self, path: Path, name: str, alias: str) -> None:
        """Keep a finished file of weights under a name that all runs of its kind share."""

    def uses(self, path: Path, name: str, alias: str) -> None:
        """Declare a file of weights that another run keeps as an input."""

    def summary(self, values: Mapping[str, object]) -> None: ...


def model_of(record: RunRecord) -> tuple[Path, str, str]:
    """Return a run's weights as an artifact: file, name and alias."""
    name = re.sub(r"[^\w.-]", "-", record.run["experiment"])
    return record.path / "weights.npz", name, record.run["fingerprint"]
