"""What a sink is: somewhere to tell of a record beside the store. Never the source of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from icl.errors import InputError, one_of, real


@dataclass(frozen=True)
class LoggerSettings:
    """The `logger` group of the configuration."""

    mode: str = "offline"
    project: str = "icl"
    entity: str | None = None
    init_timeout: float = 15
    heatmap_seeds: str = "mean"

    def __post_init__(self) -> None:
        one_of("logger.mode", self.mode, ("none", "offline", "online"))
        one_of("logger.heatmap_seeds", self.heatmap_seeds, ("mean", "each"))
        real("logger.init_timeout", self.init_timeout, 0, open_low=True)
        if not isinstance(self.project, str) or not self.project or set(self.project) & set("/\\#?%:"):
            raise InputError(f"logger.project={self.project}: must be a name without any of / \\ # ? % :")


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
