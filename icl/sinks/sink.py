"""The interface of loggers beside the run store. A logger is never the source of a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger

Pictures = Iterable[tuple[str, bytes]]  # a caption and a PNG each, drawn when taken


class Sink(Protocol):
    """A logger of one run. Steps never decrease."""

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Curves; None and NaN leave a gap."""

    def images(self, step: int, name: str, pictures: Pictures) -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def model(self, path: Path, name: str, alias: str) -> None:
        """Keep a finished file of weights under a name that all runs of its kind share."""

    def uses(self, path: Path, name: str, alias: str) -> None:
        """Say that what is reported is made from a file of weights, which `model` keeps for another run."""

    def config(self, values: Mapping[str, object]) -> None: ...

    def summary(self, values: Mapping[str, object]) -> None: ...

    def fail(self) -> None:
        """It is to end as failed."""

    def loggers(self) -> Sequence[Logger]:
        """Lightning's way to the same place, for what a callback logs."""


class NullSink:
    """Takes everything and keeps nothing."""

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None: ...

    def images(self, step: int, name: str, pictures: Pictures) -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def model(self, path: Path, name: str, alias: str) -> None: ...

    def uses(self, path: Path, name: str, alias: str) -> None: ...

    def config(self, values: Mapping[str, object]) -> None: ...

    def summary(self, values: Mapping[str, object]) -> None: ...

    def fail(self) -> None: ...

    def loggers(self) -> Sequence[Logger]:
        return []


def model_of(record: RunRecord) -> tuple[Path, str, str]:
    """A run's weights as the artifact that `Sink.model` and `Sink.uses` take."""
    name = re.sub(r"[^\w.-]", "-", record.run["experiment"])
    return record.path / "weights.npz", name, record.run["fingerprint"]
