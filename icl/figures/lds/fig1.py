"""Figure 1 of lds: setting (a), AR(1) to AR(3)."""

from __future__ import annotations

from icl.figures.lds import weights


class Fig1(weights.Weights):
    caption = f"Setting (a): A diagonal, c = 1. {weights.CAPTION}"
