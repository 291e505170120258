"""Figure 6 of lds: setting (c), AR(1) to AR(3)."""

from __future__ import annotations

from icl.figures.lds import weights


class Fig6(weights.Weights):
    caption = (
        "Setting (c): A not symmetric, with a well-conditioned eigenbasis, c random; Section 5's "
        "prose swaps Figures 5 and 6. "
        f"{weights.CAPTION}"
    )
