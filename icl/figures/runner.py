"""The runner of a figure, which gives a training run, or arrays computed once and stored like one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from icl.runs.record import RunRecord


class Runner(Protocol):
    """Given to a figure by the command line; what is done already is found, not repeated."""

    scale: str

    def train(self, experiment: str, overrides: Mapping[str, Any] | None = None) -> RunRecord:
        """Return the finished run of conf/experiment/EXPERIMENT.yaml with these overrides."""

    def store(
        self,
        name: str,
        science: Mapping[str, Any],
        compute: Callable[[], Mapping[str, np.ndarray]],
    ) -> RunRecord:
        """Return the arrays `compute` gives, as runs/NAME/FINGERPRINT; `science` must determine them. Its
        `seeds`, if any, are those of the record.

        They are computed anew when code has changed that the module `compute` is written in reaches.
        """

    def info(self, line: str) -> None:
        """Show a line to whoever waits."""
