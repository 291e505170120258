"""ahn, Figure 7: test loss against the number of layers L, or of steps, at N = 20."""

from __future__ import annotations

from icl.figures.ahn import losses
from icl.figures.ahn.losses import LossComparison, Losses
from icl.figures.claims import Claim
from icl.figures.drawing import Records
from icl.verdicts import joint

PGD = ("pgd_one", "pgd_steps")
MODELS = ("trained", "plain")


class Fig7(LossComparison):
    caption = (
        "Loss given the context, averaged exactly over task and query, of L trained layers (11) and of L "
        "steps of GD and of PGD (Sigma^-1) with step sizes searched on an independent draw, all on the same "
        "contexts of 20 examples. "
        f"{losses.HOW} At L = 1 B has no effect and the trained layer is one step of PGD (Theorem 1). "
        "Dashed: exact values. Grey: the authors' PGD baseline, which uses 19 of the 20 examples and "
        "one eta from a grid of nine; the paper also compares unpaired draws and keeps the best of the last "
        "twenty checkpoints, here it is the last one."
    )

    array, letter, x_label, ceiling = "layers", "L", "layers, or steps, $L$", 4

    def claims(self, records: Records) -> list[Claim]:
        comparison = self.losses(records)
        deeper = [depth for depth in comparison.values if depth > 1]
        return [
            *([_one_layer(comparison)] if 1 in comparison.values else []),
            *(losses.compare_means(comparison, "trained", pgd, "L", deeper) for pgd in PGD if deeper),
            losses.compare_means(comparison, "pgd_one", "gd_one", "L", comparison.values),
            losses.compare_means(comparison, "pgd_steps", "gd_steps", "L", comparison.values),
            *([losses.claim_share_left(comparison, "L", deeper)] if deeper else []),
            *(
                losses.compare_medians(comparison, name, "pgd_steps", "L", deeper)
                for name in MODELS
                if deeper
            ),
            *([losses.claim_missed_tail(comparison, "L", deeper)] if deeper else []),
            losses.claim_best_search(comparison, "L"),
            losses.claim_overstated_baseline(comparison, "L"),
        ]


def _one_layer(comparison: Losses) -> Claim:
    """Compare with one step of PGD, the optimum at L = 1, which trained weights can only approach."""
    excess = [comparison.difference("trained", "pgd_steps", r) for r in comparison.at(1)]
    verdicts = [interval.below(0.02) for interval in excess]
    return Claim(
        "At L = 1 the trained layer has the loss of one step of PGD, its optimum (Theorem 1)",
        max(interval.middle for interval in excess),
        f"mean loss on the same contexts less than 2 % above PGD's, {losses.LEVEL:.1%} paired interval",
        joint(verdicts),
        kind="sampled",
    )
