"""What a figure is: it draws and measures stored arrays, and makes none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from icl.figures.claims import Claim
    from icl.runs.record import RunRecord

Records = Mapping[str, "RunRecord"]


class Drawing(Protocol):
    """Of the records an experiment made, by the names it gave them."""

    caption: str

    def draw(self, records: Records) -> Figure: ...

    def claims(self, records: Records) -> Sequence[Claim]: ...

    def table(self, records: Records) -> Sequence[Mapping[str, Any]]:
        """Everything drawn, for the CSV beside the picture: one value a row."""
