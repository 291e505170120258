"""Figure 4 of ahn: the trained B_0 and B_1 of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from icl.figures.claims import Claim, below
from icl.figures.curves import Rows, matrix_rows
from icl.figures.style import heatmaps
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]
ON_S = 0.1  # where a Dist that 'appears to be decreasing to 0' (section 5.1) has to end


class Fig4:
    caption = (
        "B_0 and B_1 at the end of the training of Figure 3, first seed; the CSV has every seed. On the set "
        "S of Theorem 4 these are b_l I. Above each matrix its scalar b_l = trace / d."
    )

    def draw(self, records: Records) -> Figure:
        B_LDD = records["run"].B[0]
        scalars = np.trace(B_LDD, axis1=1, axis2=2) / B_LDD.shape[-1]
        titles = [f"$B_{layer}$: $b_{layer}={b:.3f}$" for layer, b in enumerate(scalars)]
        return heatmaps(dict(zip(titles, B_LDD, strict=True)))

    def table(self, records: Records) -> Rows:
        run = records["run"]
        layers = range(run.B.shape[1])
        return [row for i in layers for row in matrix_rows(f"B{i}", run.B[:, i], run.run["seeds"])]

    def claims(self, records: Records) -> list[Claim]:
        run = records["run"]
        return [diagonal_claim(f"B_{i}", run.B[:, i], run.run["seeds"]) for i in range(run.B.shape[1])]


def diagonal_claim(name: str, M_SDD: np.ndarray, seeds: list[int]) -> Claim:
    """The matrix is a multiple of I."""
    mean_S11 = np.trace(M_SDD, axis1=1, axis2=2)[:, None, None] / M_SDD.shape[-1]
    rest_SDD = M_SDD - mean_S11 * np.eye(M_SDD.shape[-1])
    share_S = np.linalg.norm(rest_SDD, axis=(1, 2)) / np.linalg.norm(M_SDD, axis=(1, 2))
    return Claim(
        f"{name}: 'the weight pattern matches the stationary point', a multiple of I",
        {"Dist": dict(zip(map(str, seeds), share_S.tolist(), strict=True))},
        f"Dist below {ON_S} in every seed",
        below(float(share_S.max()), ON_S),
        kind="exact",
    )
