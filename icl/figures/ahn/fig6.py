"""ahn, Figure 6: test loss against the number of examples N, three layers against three steps."""

from __future__ import annotations

import numpy as np

from icl.figures.ahn import losses
from icl.figures.ahn.losses import LossComparison, Losses
from icl.figures.claims import Claim
from icl.figures.drawing import Panels, Records
from icl.verdicts import joint


class Fig6(LossComparison):
    caption = (
        "Loss given the context, averaged exactly over task and query, of three trained layers (11), three "
        "steps of GD and of PGD (Sigma^-1) with step sizes searched on an independent draw, and OLS of "
        "minimum norm, all on the same contexts. "
        f"{losses.HOW} OLS is 0 for N >= d = 5. Dashed: exact "
        "values. Grey: the authors' PGD baseline, which uses N - 1 of the N examples and one eta from "
        "a grid of nine; the paper also compares unpaired draws and keeps the best of the last ten "
        "checkpoints, here it is the last one."
    )

    array, letter, x_label, ceiling = "context", "N", "number of examples $N$", 8

    def decorate(self, panels: Panels, records: Records) -> None:
        super().decorate(panels, records)
        panels["mean"].text(0.03, 0.03, "OLS is 0 for $N \\geq d$", transform=panels["mean"].transAxes)

    def claims(self, records: Records) -> list[Claim]:
        comparison = self.losses(records)
        return [
            losses.compare_means(comparison, "trained", "pgd_one", "N", comparison.values),
            losses.compare_means(comparison, "trained", "pgd_steps", "N", comparison.values),
            losses.compare_means(comparison, "pgd_one", "gd_one", "N", comparison.values),
            losses.compare_means(comparison, "pgd_steps", "gd_steps", "N", comparison.values),
            losses.claim_near_best(comparison, "N", comparison.values),
            losses.compare_medians(comparison, "trained", "pgd_steps", "N", comparison.values),
            losses.compare_medians(comparison, "plain", "pgd_steps", "N", comparison.values),
            losses.claim_missed_tail(comparison, "N", comparison.values),
            losses.claim_best_search(comparison, "N"),
            _least_squares(comparison),
            losses.claim_overstated_baseline(comparison, "N"),
        ]


def _least_squares(comparison: Losses) -> Claim:
    """Claim that OLS is best for N < d: in whitened coordinates it is the posterior mean."""
    left_R = comparison.exact_R["ols"]
    error = float(np.abs(comparison.loss_RC["ols"] - left_R[:, None]).max())
    few = np.flatnonzero(left_R > 0)
    raw = [losses.mean_interval(comparison.on_plain_contexts("ols_raw", r) - left_R[r]) for r in few]
    others = [name for name in comparison.loss_RC if name != "ols"]
    margin = min(
        (float((comparison.loss_RC[name][r] - left_R[r]).min()) for name in others for r in few), default=0
    )
    verdicts = ["holds" if error < losses.ZERO and margin > -losses.ZERO else "fails"]
    return Claim(
        "OLS of minimum norm in whitened coordinates has loss max(d - N, 0) on every context; "
        "for N < d nothing is better on any context, and minimum norm in raw x is worse",
        {
            "largest error": error,
            "least margin of the others": margin,
            **{
                f"raw x, N={comparison.x_R[r]}": float(comparison.on_plain_contexts("ols_raw", r).mean())
                for r in few[::-1]
            },
        },
        f"rounding {losses.ZERO:g}; raw mean above d - N, {losses.LEVEL:.1%} interval",
        joint(verdicts + ["holds" if interval.low > 0 else "undecided" for interval in raw]),
        trained=False,
        whose="project",
        kind="sampled",
    )
