"""Figure 5 of giannou: answers of LSA with LayerNorm where the query is in distribution."""

from __future__ import annotations

from icl.figures.claims import Claim
from icl.figures.drawing import Records
from icl.figures.giannou import outputs
from icl.figures.giannou.regression import LEVEL
from icl.verdicts import joint

OF = "layernorm_outputs"


class Fig5(outputs.Outputs):
    caption = (
        "Figure 3 for LSA with LayerNorm before each layer and before the read-out, over tokens, without a "
        "mask; N(0, I). Dashed black: the line <w, x>. Grey dashed: what holds 99 % of the coordinate. "
        "Blue: mean over seeds and their range. Training is short at smoke and laptop."
    )

    source = OF

    def claims(self, records: Records) -> list[Claim]:
        arrays, plain = outputs.arrays_of(records, OF), outputs.arrays_of(records)
        here, measured, verdicts = outputs.in_distribution(arrays), {}, []
        for depth in sorted(set(arrays["depths_L"].tolist()) & set(plain["depths_L"].tolist())):
            with_it, without = (
                [outputs.miss(of, mean_KG, here) for mean_KG in of[f"{outputs.run_name(name, depth)}_RKG"]]
                for of, name in ((arrays, "layernorm"), (plain, "unmasked"))
            )
            low, high = (max(value.mean for value in values) for values in (with_it, without))
            measured[f"{depth} layers"] = f"{low:.3g} with, {high:.3g} without"
            better = all(value.below(other) for value in with_it for other in without)
            verdicts.append("holds" if better else "undecided")
        return [
            Claim(
                "LayerNorm improves the model: in distribution the mean output is nearer to the line <w, x> "
                "than without it, at every depth (no mask, N(0, I))",
                measured,
                f"of the line's size, every seed against every other (largest shown), {LEVEL:.1%} intervals "
                "over contexts; what is not smaller depends on the budget",
                joint(verdicts),
                expected="undecided",
                remarks=[
                    "The best stack with LayerNorm is at least as good at every depth (Figure 2), and no "
                    "budget refutes the claim of the best. Of training from random weights the paper's own "
                    "decides: icl figure figure=giannou/fig5 scale=paper.",
                ],
                kind="sampled",
            )
        ]
