"""Figure 5 of lds: setting (d), AR(1) to AR(4)."""

from __future__ import annotations

from icl.figures.lds import weights


class Fig5(weights.Weights):
    caption = (
        "Setting (d): as (b), with process noise that is not isotropic; Section 5's prose swaps "
        "Figures 5 and 6. "
        f"{weights.CAPTION}"
    )
