"""What a sink is: somewhere to tell of a record beside the store. Never the source of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Sink(Protocol):
    """Where a run reports to. Steps never decrease."""

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Curves; None and NaN leave a gap."""

    def image(self, step: int, name: str, png: bytes, caption: str = "") -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def file(self, path: Path) -> None:
        """Keep a finished file with the run; it must not be written to again."""

    def summary(self, values: Mapping[str, object]) -> None: ...


class NullSink:
    """Takes everything and keeps nothing."""

    def log(self, step: int, scalars: Mapping[str, float | None]) -> None: ...

    def image(self, step: int, name: str, png: bytes, caption: str = "") -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def file(self, path: Path) -> None: ...

    def summary(self, values: Mapping[str, object]) -> None: ...
