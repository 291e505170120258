"""Figure 9 of giannou: LSA with LayerNorm and Newton's iteration on ill-conditioned and noisy regression."""

from __future__ import annotations

from icl.figures.claims import Claim
from icl.figures.drawing import Records
from icl.figures.giannou import regression
from icl.figures.giannou.regression import LEVEL, law_title, laws_of
from icl.figures.items import Item, Level


class Fig9(regression.LossByLaw):
    caption = (
        "Figure 8 for LSA with LayerNorm before each layer and before the read-out, over tokens, without a "
        "mask. Mean over seeds and their range; training is short at smoke and laptop, and deeper stacks "
        "are trained at paper scale alone. Dotted black: least squares, which noise leaves above zero."
    )

    def items(self, records: Records) -> list[Item]:
        items: list[Item] = []
        for law in laws_of(records):
            known = records[f"baselines_{law}"].weights
            items += regression.newton_lines(law, known, max(known["depths_L"].tolist()))
            items.append(regression.layernorm_curve(law, records, law))
            if float(known["least_squares"]) > 0:
                items.append(Level(law, "least squares", float(known["least_squares"]), ":"))
        return items

    def claims(self, records: Records) -> list[Claim]:
        places = {}
        for law in laws_of(records):
            known, arrays = (
                records[name].weights for name in (f"baselines_{law}", f"losses_{law}_layernorm")
            )
            for depth in known["depths_L"].tolist():
                values = regression.of_seeds(arrays, f"{law}_layernorm_L{depth}")
                key = f"{law_title(law)}, L = {depth}"
                places[key] = regression.place(values, known, "transpose", depth)
        higher = set(places.values()) <= {"between", "below order 3"}
        return [
            Claim(
                "trained LSA with LayerNorm finds higher-order methods on ill-conditioned problems: it has a "
                "smaller loss than as many steps of order 2 (authors' start), for every kappa, noise and "
                "depth",
                places,
                f"in every seed, {LEVEL:.1%} intervals over prompts",
                ("holds" if higher else "fails") if self.decisive else "undecided",
                expected="holds" if self.decisive else "undecided",
                remarks=["A matter of budget: icl figure figure=giannou/fig9 scale=paper decides."],
                kind="sampled",
            )
        ]
