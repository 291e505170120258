"""Base class of a figure: its runs, its panels and what is in them, and its claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture

from icl.figures.arrays import Records
from icl.figures.style import PANEL, rc
from icl.look import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from icl.figures.claims import Claim
    from icl.figures.runner import Runner

Panels = Mapping[str, "Axes"]
_READABLE = 0.8  # of a panel's width; one that would be narrower goes into a further row


@dataclass(frozen=True)
class Layout:
    """Panels by their names, in reading order; all in one row unless `columns` says how many."""

    panels: Sequence[str] = ("",)
    size: tuple[float, float] = PANEL  # of a panel, in inches
    columns: int = 0
    widths: Sequence[float] = ()  # of the columns, where they differ

    def create(self) -> tuple[Picture, dict[str, Axes]]:
        """Return a figure, as wide as asked for, and its axes by panel."""
        widths = self.widths or [self.size[0]] * (self.columns or len(self.panels))
        width, height = current().width or sum(widths), self.size[1]
        if not self.widths:
            fitting = min(len(widths), max(1, int(width / (_READABLE * self.size[0]))))
            rows_each = -(-len(widths) // fitting)
            columns = -(-len(widths) // rows_each)  # as even as can be
            widths = [width / columns] * columns
            height *= min(widths[0] / self.size[0], 1.5)
        rows = -(-len(self.panels) // len(widths))
        with rc_context(rc()):  # without pyplot's global state
            figure = Picture(figsize=(width, rows * height), dpi=200, layout="constrained")
            FigureCanvasAgg(figure)
            cells = figure.add_gridspec(rows, len(widths), width_ratios=widths)
            return figure, {name: figure.add_subplot(cells[i]) for i, name in enumerate(self.panels)}


class Figure(ABC):
    """A figure: its settings are what its class is built with."""

    caption = ""  # that of the config, if it has one
    layout = Layout()

    @abstractmethod
    def runs(self, runner: Runner) -> Records:
        """Return the runs it is drawn from by name, trained or computed where they are not there yet."""

    def layout_of(self, records: Records) -> Layout:
        """Return the panels, where they depend on the records."""
        return self.layout

    def caption_of(self, records: Records) -> str:
        """Return the caption, where it depends on the records."""
        return self.caption

    @abstractmethod
    def draw(self, panels: Panels, records: Records) -> None:
        """Draw everything: curves, titles, scales and legends."""

    @abstractmethod
    def claims(self, records: Records) -> Sequence[Claim]:
        """Return the claims with their verdicts."""

    def picture(self, records: Records) -> Picture:
        figure, by_panel = self.layout_of(records).create()
        with rc_context(rc()):
            self.draw(by_panel, records)
        return figure
