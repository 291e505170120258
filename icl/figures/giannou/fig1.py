"""Figure 1 of giannou: the logistic loss of a trained transformer by layers, and of Newton's method."""

from __future__ import annotations

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.giannou.losses import arrays_of, by_depth, claims_at_equal_layers, label_depth
from icl.figures.items import Item

MOST = 40  # layers, as far as the paper draws


class Fig1(Drawing):
    caption = (
        "The regularised logistic loss (3.5) of encoders (softmax attention and MLP) of several depths, mean "
        "over prompts and seeds and the range over seeds, and of damped Newton from x = 0 on the labelled "
        "points. Newton's steps count as 13 layers each, as in the paper's main text, and as the 11 + 2k of "
        "its appendix. Dashed: the minimum. The paper trains 1 to 40 layers; up to 12 of them are compared "
        "with Newton's start."
    )

    layout = Layout(("loss",), (3.6, 2.4))

    def items(self, records: Records) -> list[Item]:
        return by_depth("loss", arrays_of(records), MOST)

    def decorate(self, panels: Panels, records: Records) -> None:
        label_depth(panels["loss"], MOST)

    def claims(self, records: Records) -> list[Claim]:
        return claims_at_equal_layers(arrays_of(records))
