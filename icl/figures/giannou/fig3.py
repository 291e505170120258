"""Figure 3 of giannou: answers of LSA and of Newton's iteration where the query is in distribution."""

from icl.figures.claims import Claim, exact
from icl.figures.figure import Records
from icl.figures.giannou.outputs import NEAR_RANGE, SHARE, Outputs, misses, range_of, share_within, stack_name
from icl.figures.giannou.regression import (
    LEVEL,
    ORDERS,
    PUBLISHED_LARGEST,
    TEXT_LARGEST,
    place_between,
)
from icl.verdicts import joint


class Fig3(Outputs):
    def claims(self, records: Records) -> list[Claim]:
        share = share_within(NEAR_RANGE[0], *TEXT_LARGEST)
        return [
            Claim.of(
                "14.9 holds 99 % of the first coordinate under the law of the text (kappa = 1, lambda_max "
                "uniform in [1, 100])",
                {
                    "share within 14.9": share,
                    "what holds 99 %": range_of(*TEXT_LARGEST),
                    "what holds 99 % of N(0, I)": range_of(*PUBLISHED_LARGEST),
                },
                exact(share).above(SHARE, f"share above {SHARE:.0%}, by quadrature"),
                expected="fails",
                trained=False,
                remarks=[
                    "N(0, I), which the published code samples, practically never has a coordinate of 14.9."
                ],
            ),
            self._between(records),
        ]

    def _between(self, records: Records) -> Claim:
        """Compare distances of the mean output from the line; one below order 3's refutes it for good."""
        arrays = records["outputs"].weights
        measured, verdicts = {}, []
        for depth in self.layers:
            second, third = (
                misses(arrays, arrays[f"newton_transpose_{order}_TKG"][[depth]])[0] for order in ORDERS
            )
            of_seeds = misses(arrays, arrays[f"{stack_name('unmasked', depth)}_RKG"])
            where, worst = place_between(of_seeds, second, third), max(value.mean for value in of_seeds)
            measured[f"{depth} layers"] = f"{worst:.3g}, {where} ({second.mean:.3g}, {third.mean:.3g})"
            verdicts.append("fails" if where == "below order 3" else "undecided")
        return Claim(
            "in distribution the output of l layers, without a mask, lies between that of l steps of orders "
            "2 and 3 (from the authors' start, N(0, I)): how far the mean output is from the line <w, x>",
            measured,
            "of the line's size, orders 2 and 3 in brackets; in every seed, "
            f"{LEVEL:.1%} intervals over contexts; what is not below order 3 depends on the budget",
            joint(verdicts),
            expected="fails",
            kind="sampled",
        )
