"""Base classes of a figure: panels, items in them, and claims. It draws stored arrays and makes none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib import rc_context

from icl.figures.items import Item, Rows, draw_items, table
from icl.figures.legends import settle
from icl.figures.style import PANEL, new_figure, rc
from icl.look import current
from icl.runs.record import RunRecord
from icl.runs.sweeps import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icl.figures.claims import Claim

Records = Mapping[str, RunRecord]
Panels = Mapping[str, "Axes"]
_READABLE, _LEAST = 1.5, 0.55  # of a panel's width: inches, and a share of its own
_LOWEST, _HIGHEST = 0.85, 1.6  # of its height


@dataclass(frozen=True)
class Layout:
    """Panels by their names, in reading order; all in one row unless `columns` says how many.

    Where a figure is drawn at a given width, panels that would be too narrow to read go into further rows.
    """

    panels: Sequence[str] = ("",)
    size: tuple[float, float] = PANEL  # of a panel, in inches
    columns: int = 0
    widths: Sequence[float] = ()  # of the columns, where they differ
    margin: float = 0.0  # added to the height
    is_table: bool = False  # columns that do not fit go below, all their rows together

    def create(self) -> tuple[Figure, dict[str, Axes]]:
        """Return a figure and its axes by panel; places that have no name are left blank."""
        width = current().width
        grid = self._natural() if width is None else self._fitted(width)
        height = self.size[1] * grid.scale * grid.rows + self.margin
        figure = new_figure((sum(grid.widths), height))
        with rc_context(rc()):
            cells = figure.add_gridspec(grid.rows, len(grid.widths), width_ratios=grid.widths)
            found = {
                name: figure.add_subplot(cells[row, columns])
                for name, (row, columns) in zip(self.panels, grid.places, strict=True)
            }
        return figure, found

    def _natural(self) -> _Grid:
        widths = self.widths or [self.size[0]] * (self.columns or len(self.panels))
        return _Grid(list(widths), _in_rows(len(self.panels), len(widths)))

    def _fitted(self, width: float) -> _Grid:
        natural = self._natural()
        count = len(natural.widths)
        if self.widths and width < _LEAST * sum(self.widths):
            return self._with_first_alone(width, count)
        if self.widths:
            return _Grid([width * one / sum(self.widths) for one in self.widths], natural.places)
        least = max(_READABLE, _LEAST * self.size[0])
        fitting = min(count, max(1, int(width / least + 1e-9)))
        fitting = -(-count // -(-count // fitting))  # as even as can be
        scale = min(max(width / fitting / self.size[0], _LOWEST), _HIGHEST)
        places = _in_rows(len(self.panels), fitting)
        if self.is_table:
            rows = natural.rows
            ordered = [(i // count, i % count) for i in range(len(self.panels))]
            places = [(c // fitting * rows + r, slice(c % fitting, c % fitting + 1)) for r, c in ordered]
        return _Grid([width / fitting] * fitting, places, scale)

    def _with_first_alone(self, width: float, count: int) -> _Grid:
        """Give the first panel of each row a row to itself, and the narrow others as many as they take."""
        fitting = min(count - 1, max(1, int(width / min(self.widths) + 1e-9)))
        rows_each = 1 + -(-(count - 1) // fitting)
        places = []
        for i in range(len(self.panels)):
            row, at = i // count * rows_each, i % count - 1
            within = slice(at % fitting, at % fitting + 1)
            places.append((row + 1 + at // fitting, within) if at >= 0 else (row, slice(0, fitting)))
        return _Grid([width / fitting] * fitting, places)


@dataclass(frozen=True)
class _Grid:
    """Widths of the columns in inches, row and columns of each panel, and by how much a panel is higher."""

    widths: list[float]
    places: list[tuple[int, slice]]
    scale: float = 1.0

    @property
    def rows(self) -> int:
        return max(row for row, _ in self.places) + 1


def _in_rows(count: int, columns: int) -> list[tuple[int, slice]]:
    return [(i // columns, slice(i % columns, i % columns + 1)) for i in range(count)]


class Drawing(ABC):
    """A figure of the records an experiment made, by the names it gave them.

    A subclass says what is in the panels (`items`), what is around it (`decorate`) and what it claims.
    """

    caption: str
    layout = Layout()

    def layout_of(self, records: Records) -> Layout:
        """Return the panels, where they depend on the records."""
        return self.layout

    def caption_of(self, records: Records) -> str:
        """Return the caption, where it depends on the records."""
        return self.caption

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
        with rc_context(rc()):
            draw_items(by_panel, self.items(records))
            self.decorate(by_panel, records)
            settle(figure)
        return figure

    def data(self, records: Records) -> Table:
        """Return everything drawn, one value a row: panel, curve in plain words, seed, x, y, low, high."""
        seeds: Sequence[int] = next(
            (record.run["seeds"] for record in records.values() if record.run["seeds"]), []
        )
        return Table(row for item in self.items(records) for row in item.data(seeds))

    def table(self, records: Records) -> Rows:
        """Return everything drawn, for the CSV beside the picture: one value a row."""
        return table(self.items(records))


class Heatmaps(Drawing):
    """Matrices in one row, each on its own scale."""

    def layout_of(self, records: Records) -> Layout:
        return Layout([item.panel for item in self.items(records)], (1.9, 1.95))
