"""Figure 2 of ahn: the trained matrices of Figure 1, whitened, are multiples of the identity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from icl.figures.claims import Claim, below
from icl.figures.curves import Rows, matrix_rows
from icl.figures.style import heatmaps, off_identity
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]


class Fig2:
    caption = (
        "Sigma^1/2 A_l Sigma^1/2 at the end of the training of Figure 1, first seed; the CSV has every "
        "seed. On the set S of Theorem 3 these are a_l I. Above each matrix its scalar a_l = trace / d. The "
        "risk on S does not depend on the order of the layers (Lemma 4), so which layer has the large step "
        "is chance."
    )

    def draw(self, records: Records) -> Figure:
        exact = records["exact"].weights
        return heatmaps(
            {
                rf"$\Sigma^{{1/2}}A_{layer}\Sigma^{{1/2}}$: $a_{layer}={a:.3f}$": M_DD
                for layer, (M_DD, a) in enumerate(zip(exact["white_RLDD"][0], exact["a_RL"][0], strict=True))
            }
        )

    def table(self, records: Records) -> Rows:
        white_RLDD, seeds = records["exact"].weights["white_RLDD"], records["run"].run["seeds"]
        return [
            row
            for layer in range(white_RLDD.shape[1])
            for row in matrix_rows(f"A{layer}", white_RLDD[:, layer], seeds)
        ]

    def claims(self, records: Records) -> list[Claim]:
        exact = records["exact"].weights
        off = float(off_identity(exact["white_RLDD"]).max())
        a_SL, optimal_L = np.sort(exact["a_RL"], axis=1), np.sort(exact["optimal_a_L"])
        away = float(np.abs(a_SL / optimal_L - 1).max())
        return [
            Claim(
                "every trained Sigma^1/2 A_l Sigma^1/2 matches S: no entry is far from a_l I",
                {"largest deviation / a_l": off},
                "below .1 in every layer and seed",
                below(off, 0.1),
                kind="exact",
            ),
            Claim(
                "the scalars a_l, in ascending order, are those of the exact minimum on S",
                {
                    "trained": a_SL.mean(0).tolist(),
                    "exact": optimal_L.tolist(),
                    "largest relative difference": away,
                },
                "relative difference below .1 in every layer and seed",
                below(away, 0.1),
                kind="exact",
            ),
        ]
