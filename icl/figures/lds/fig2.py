"""Figure 2 of lds: setting (a), AR(4)."""

from __future__ import annotations

from icl.figures.lds import weights


class Fig2(weights.Weights):
    caption = f"Setting (a), window 4. {weights.CAPTION}"
