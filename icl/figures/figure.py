"""Base class of a figure: its runs, its panels and what is in them, and its claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture

from icl.figures.arrays import Records
from icl.figures.look import current
from icl.figures.style import PANEL, mark, rc

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.gridspec import SubplotSpec

    from icl.figures.claims import Claim
    from icl.figures.runner import Runner

Panels = Mapping[str, "Axes"]
WIDEST = 10.2  # inches, where no width is asked for
READABLE = 0.8  # of a panel's width; one that would be narrower goes into a further row


@dataclass(frozen=True)
class Layout:
    """Panels by their names, in reading order; all in one row unless `columns` says how many."""

    panels: Sequence[str] = ("",)
    size: tuple[float, float] = PANEL  # of a panel, in inches
    columns: int = 0
    widths: Sequence[float] = ()  # of the columns, where they differ

    def create(self) -> tuple[Picture, dict[str, Axes]]:
        """Return a figure, as wide as asked for, and its axes by panel."""
        widths = [*self.widths] or [self.size[0]] * (self.columns or len(self.panels))
        width = current().width or min(sum(widths), WIDEST)
        cut = _lines(widths, width)
        longest, lines = max(cut, key=sum), cut * -(-len(self.panels) // len(widths))
        height = self.size[1] * (1 if self.widths else min(width / sum(longest), 1.5))
        with rc_context(rc()):  # without pyplot's global state
            figure = Picture(figsize=(width, len(lines) * height), dpi=200, layout="constrained")
            FigureCanvasAgg(figure)
            grid = figure.add_gridspec(len(lines), len(longest), width_ratios=longest)
            cells: list[SubplotSpec] = []
            for i, line in enumerate(lines):
                if line == longest[: len(line)]:
                    cells += [grid[i, j] for j in range(len(line))]
                else:
                    own = [*line, *filter(None, [sum(longest) - sum(line)])]
                    row = grid[i, :].subgridspec(1, len(own), width_ratios=own)
                    cells += [row[j] for j in range(len(line))]
            return figure, {name: figure.add_subplot(cells[i]) for i, name in enumerate(self.panels)}


def _lines(widths: Sequence[float], width: float) -> list[list[float]]:
    """Cut a row of panels into lines, as few as are readable, as even as can be."""
    middles = (np.cumsum(widths) - np.divide(widths, 2)) / sum(widths)
    for count in range(1, len(widths) + 1):
        line_W = np.ceil(middles * count).clip(1)
        lines = [[w for w, k in zip(widths, line_W, strict=True) if k == n] for n in range(1, count + 1)]
        if READABLE * max(map(sum, lines)) <= width:
            break
    return [line for line in lines if line]


class Figure(ABC):
    """A figure: its settings are what its class is built with."""

    caption = ""  # that of the config, if it has one
    remark = ""  # beside the picture, where it was trained with fewer steps than the paper's
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
            if self.remark:
                mark(figure, self.remark)
        return figure
