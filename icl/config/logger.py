"""The `logger` group of the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from icl.errors import InputError, one_of, real


@dataclass(frozen=True)
class LoggerSettings:
    """`logger.*`: whether and where W&B is told. No number depends on it."""

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
