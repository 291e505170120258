"""Figure 2 of ahn: the trained matrices of Figure 1, whitened, are multiples of the identity."""

import numpy as np

from icl.figures.ahn.fig1 import Fig1
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.style import heatmap


class Fig2(Fig1):
    caption_of = Figure.caption_of

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"A{i}" for i in range(records["exact"].weights["a_RL"].shape[1])], (1.9, 1.95))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        first = zip(panels.values(), arrays["white_RLDD"][0], arrays["a_RL"][0], strict=True)
        for i, (axes, white_DD, a) in enumerate(first):
            heatmap(axes, white_DD, rf"$\Sigma^{{1/2}}A_{i}\Sigma^{{1/2}}$: $a_{i}={a:.3f}$")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        off = float(off_identity(arrays["white_RLDD"]).max())
        a_RL, optimal_L = np.sort(arrays["a_RL"], axis=1), np.sort(arrays["optimal_a_L"])
        away = float(np.abs(a_RL / optimal_L - 1).max())
        return [
            Claim.of(
                "every trained Sigma^1/2 A_l Sigma^1/2 matches S: no entry is far from a_l I",
                {"largest deviation / a_l": off},
                exact(off).below(0.1, "below .1 in every layer and seed"),
            ),
            Claim.of(
                "the scalars a_l, in ascending order, are those of the exact minimum on S",
                {
                    "trained": a_RL.mean(0).tolist(),
                    "exact": optimal_L.tolist(),
                    "largest relative difference": away,
                },
                exact(away).below(0.1, "relative difference below .1 in every layer and seed"),
            ),
        ]


def off_identity(M_XIJ: np.ndarray) -> np.ndarray:
    """Return the largest entry of |M - m I| over |m|, m the mean of the diagonal; leading axes are kept."""
    m_X11 = np.trace(M_XIJ, axis1=-2, axis2=-1)[..., None, None] / M_XIJ.shape[-1]
    return (np.abs(M_XIJ - m_X11 * np.eye(M_XIJ.shape[-1])) / np.abs(m_X11)).max((-2, -1))
