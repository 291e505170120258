"""Figure 4 of ahn: the trained B_0 and B_1 of Figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Heatmaps, Records
from icl.figures.items import Heatmap, metric
from icl.runs.record import RunRecord

ON_S = 0.1  # where a Dist that 'appears to be decreasing to 0' (section 5.1) has to end
STILL_FALLING = 0.01  # share by which the loss of fixed prompts falls in the last tenth of a run


class Fig4(Heatmaps):
    caption = (
        "B_0 and B_1 at the end of the training of Figure 3, first seed; the CSV has every seed. On the set "
        "S of Theorem 4 these are b_l I. Above each matrix its scalar b_l = trace / d."
    )

    def items(self, records: Records) -> list[Heatmap]:
        run = records["run"]
        b_L = np.trace(run.B[0], axis1=1, axis2=2) / run.B.shape[-1]
        titles = [f"$B_{i}$: $b_{i}={b:.3f}$" for i, b in enumerate(b_L)]
        return [Heatmap(f"B{i}", title, run.B[:, i], run.run["seeds"]) for i, title in enumerate(titles)]

    def claims(self, records: Records) -> list[Claim]:
        run = records["run"]
        claims = [diagonal_claim(f"B_{i}", run.B[:, i], run.run["seeds"]) for i in range(run.B.shape[1])]
        return where_converged(run, claims)


def diagonal_claim(name: str, M_SDD: np.ndarray, seeds: list[int]) -> Claim:
    """Claim that a matrix is a multiple of I."""
    mean_S11 = np.trace(M_SDD, axis1=1, axis2=2)[:, None, None] / M_SDD.shape[-1]
    rest_SDD = M_SDD - mean_S11 * np.eye(M_SDD.shape[-1])
    share_S = np.linalg.norm(rest_SDD, axis=(1, 2)) / np.linalg.norm(M_SDD, axis=(1, 2))
    return Claim.of(
        f"{name}: 'the weight pattern matches the stationary point', a multiple of I",
        {"Dist": dict(zip(map(str, seeds), share_S.tolist(), strict=True))},
        exact(share_S.max()).below(ON_S, f"Dist below {ON_S} in every seed"),
        at_paper="fails",
    )


def where_converged(run: RunRecord, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims, those about trained weights undecided where the run has not converged.

    On one set of prompts the loss tells. On fresh ones the schedule of the learning rate ends the training.
    """
    train = run.config.get("train", {})
    if train.get("steps_per_batch", 0) < train.get("steps", 1):
        return list(claims)
    steps_T, loss_ST = metric(run, "loss")
    before_S = loss_ST[:, np.searchsorted(steps_T, 0.9 * steps_T[-1])]
    fall = float((1 - loss_ST[:, -1] / before_S).max())
    if fall <= STILL_FALLING:  # not of a NaN
        return list(claims)
    reason = (
        f"a seed has not converged: its loss fell by {fall:.1%} in the last tenth of the steps; more steps "
        "may decide (figure.experiment.steps)"
    )
    return [replace(c, verdict="undecided", reason=reason) if c.trained else c for c in claims]
