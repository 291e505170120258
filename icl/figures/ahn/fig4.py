"""Figure 4 of ahn: the trained B_0 and B_1 of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from icl.figures.claims import Claim, above
from icl.figures.curves import Rows, matrix_rows
from icl.figures.style import heatmaps
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]


class Fig4:
    caption = (
        "B_0 and B_1 at the end of the training of Figure 3, first seed; the CSV has every seed. On the set S of "
        "Theorem 4 these are b_l I. Above each matrix its scalar b_l = trace / d."
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
    """The part of the matrix that is a multiple of I outweighs the rest."""
    dim = M_SDD.shape[-1]
    mean_S = np.trace(M_SDD, axis1=1, axis2=2) / dim
    rest_S = np.linalg.norm(M_SDD - mean_S[:, None, None] * np.eye(dim), axis=(1, 2))
    ratio_S = np.abs(mean_S) * np.sqrt(dim) / rest_S
    return Claim(
        f"{name}'s 'weight pattern matches the stationary point' of Theorem 4: a multiple of I outweighs the rest",
        dict(zip((f"seed {seed}" for seed in seeds), ratio_S.tolist(), strict=True)),
        "norm of the multiple of I above that of the rest in every seed; the same as Dist below .707",
        above(float(ratio_S.min()), 1.0),
    )
