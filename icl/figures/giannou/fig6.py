"""Figure 6 of giannou: LSA with LayerNorm out of distribution."""

import numpy as np

from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.giannou.outputs import FAR, OutputsLayerNorm, stack_name

FEW, MANY = 5, (7, 10, 12)  # layers that the paper compares


class Fig6(OutputsLayerNorm):
    shown = FAR

    def claims(self, records: Records) -> list[Claim]:
        arrays, depths = records["layernorm_outputs"].weights, self.layernorm_layers
        line_G, miss_R = arrays["line_G"][FAR], {}
        for depth in depths:
            error_RG = arrays[f"{stack_name('layernorm', depth)}_RKG"].mean(1)[:, FAR] - line_G
            miss_R[depth] = np.sqrt((error_RG**2).mean(1) / (line_G**2).mean())
        verdict = "undecided"
        if {FEW, *MANY} <= set(depths):
            few_R, many = miss_R[FEW], [miss_R[depth] for depth in MANY]
            if all(few_R.max() < other_R.min() for other_R in many):
                verdict = "holds"
            elif any(few_R.min() > other_R.max() for other_R in many):
                verdict = "fails"
        return [
            Claim(
                "5 layers do better out of distribution than 7, 10 and 12",
                {f"{depth} layers": of_R.tolist() for depth, of_R in miss_R.items()},
                "root mean square distance from <w, x> over its size in +-100, by seed: every seed below "
                "those of the other depths; fails where every seed is above those of one of them",
                verdict,
                expected="undecided",
                remarks=[
                    "A layer that adds nothing passes the tokens on, so that the best of 7, 10 or 12 layers "
                    "is never worse than the best of 5: the claim is one about where single runs end, and no "
                    "larger budget decides it for the stacks themselves.",
                    "These depths are trained at paper scale: icl figure giannou/fig6 scale=paper.",
                ],
                kind="sampled",
            )
        ]
