"""Figure 2 of ahn: the trained matrices of Figure 1, whitened, are multiples of the identity."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Heatmaps, Records
from icl.figures.items import Heatmap
from icl.figures.style import off_identity


class Fig2(Heatmaps):
    caption = (
        "Sigma^1/2 A_l Sigma^1/2 at the end of the training of Figure 1, first seed; the CSV has every "
        "seed. On the set S of Theorem 3 these are a_l I. Above each matrix its scalar a_l = trace / d. The "
        "risk on S does not depend on the order of the layers (Lemma 4), so which layer has the large step "
        "is chance."
    )

    def items(self, records: Records) -> list[Heatmap]:
        arrays, seeds = records["exact"].weights, records["run"].run["seeds"]
        white_RLDD, a_L = arrays["white_RLDD"], arrays["a_RL"][0]
        titles = [rf"$\Sigma^{{1/2}}A_{i}\Sigma^{{1/2}}$: $a_{i}={a:.3f}$" for i, a in enumerate(a_L)]
        return [Heatmap(f"A{i}", title, white_RLDD[:, i], seeds) for i, title in enumerate(titles)]

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        off = float(off_identity(arrays["white_RLDD"]).max())
        a_SL, optimal_L = np.sort(arrays["a_RL"], axis=1), np.sort(arrays["optimal_a_L"])
        away = float(np.abs(a_SL / optimal_L - 1).max())
        return [
            Claim.of(
                "every trained Sigma^1/2 A_l Sigma^1/2 matches S: no entry is far from a_l I",
                {"largest deviation / a_l": off},
                exact(off).below(0.1, "below .1 in every layer and seed"),
            ),
            Claim.of(
                "the scalars a_l, in ascending order, are those of the exact minimum on S",
                {
                    "trained": a_SL.mean(0).tolist(),
                    "exact": optimal_L.tolist(),
                    "largest relative difference": away,
                },
                exact(away).below(0.1, "relative difference below .1 in every layer and seed"),
            ),
        ]
