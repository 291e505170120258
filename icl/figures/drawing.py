"""Base classes of a figure: panels, items in them, and claims. It draws stored arrays and makes none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icl.figures.items import Item, Rows, draw_items, table
from icl.figures.style import PANEL, panels
from icl.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icl.figures.claims import Claim

Records = Mapping[str, RunRecord]
Panels = Mapping[str, "Axes"]


@dataclass(frozen=True)
class Layout:
    """Panels by their names, in reading order; all in one row unless `columns` says how many."""

    panels: Sequence[str] = ("",)
    size: tuple[float, float] = PANEL  # of a panel, in inches
    columns: int = 0
    widths: Sequence[float] = ()  # of the columns, where they differ
    margin: float = 0.0  # added to the height

    def create(self) -> tuple[Figure, dict[str, Axes]]:
        """Return a figure and its axes by panel; places that have no name are left blank."""
        columns = self.columns or len(self.panels)
        rows = -(-len(self.panels) // columns)
        figure, grid = panels(rows, columns, self.size, self.widths, self.margin)
        for axes in grid.flat[len(self.panels) :]:
            axes.set_visible(False)
        return figure, dict(zip(self.panels, grid.flat, strict=False))


class Drawing(ABC):
    """A figure of the records an experiment made, by the names it gave them.

    A subclass says what is in the panels (`items`), what is around it (`decorate`) and what it claims.
    """

    caption: str
    layout = Layout()

    def layout_of(self, records: Records) -> Layout:
        """Return the panels, where they depend on the records."""
        return self.layout

    @abstractmethod
    def items(self, records: Records) -> Sequence[Item]:
        """Return everything in the panels, in the order in which it is drawn."""

    def decorate(self, panels: Panels, records: Records) -> None:  # noqa: B027  a figure may need none
        """Add titles, scales and legends; the items are drawn already."""

    @abstractmethod
    def claims(self, records: Records) -> Sequence[Claim]:
        """Return the claims with their verdicts."""

    def draw(self, records: Records) -> Figure:
        figure, by_panel = self.layout_of(records).create()
        draw_items(by_panel, self.items(records))
        self.decorate(by_panel, records)
        return figure

    def table(self, records: Records) -> Rows:
        """Return everything drawn, for the CSV beside the picture: one value a row."""
        return table(self.items(records))


class Heatmaps(Drawing):
    """Matrices in one row, each on its own scale."""

    def layout_of(self, records: Records) -> Layout:
        return Layout([item.panel for item in self.items(records)], (1.9, 1.95))
