"""Figure 5 of giannou: answers of LSA with LayerNorm where the query is in distribution."""

from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.giannou.outputs import OutputsLayerNorm, misses, stack_name
from icl.figures.giannou.regression import LEVEL
from icl.verdicts import joint


class Fig5(OutputsLayerNorm):
    def claims(self, records: Records) -> list[Claim]:
        normed, plain = records["layernorm_outputs"].weights, records["outputs"].weights
        measured, verdicts = {}, []
        for depth in sorted({*self.layers} & {*self.layernorm_layers}):
            with_it = misses(normed, normed[f"{stack_name('layernorm', depth)}_RKG"])
            without = misses(normed, plain[f"{stack_name('unmasked', depth)}_RKG"])
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
                    "decides: icl figure giannou/fig5 scale=paper.",
                ],
                kind="sampled",
            )
        ]
