"""Figure 1 of giannou: the logistic loss of a trained transformer by layers, and of Newton's method."""

from icl.figures.claims import Claim
from icl.figures.figure import Layout, Panels, Records
from icl.figures.giannou.logistic import LogisticFigure
from icl.figures.style import shared_legend


class Fig1(LogisticFigure):
    layout = Layout(("loss",), (3.6, 2.4))

    def draw(self, panels: Panels, records: Records) -> None:
        self.draw_loss(panels["loss"], records["losses"].weights)
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        return self.claim_at_equal_layers(records["losses"].weights)
