"""Figure 4 of lds: setting (b), AR(1) to AR(4)."""

from __future__ import annotations

from icl.figures.lds import weights


class Fig4(weights.Weights):
    caption = f"Setting (b): A symmetric with Haar eigenvectors, c random. {weights.CAPTION}"
