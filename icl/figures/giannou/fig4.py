"""Figure 4 of giannou: the same answers out of distribution."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, sampled, tried
from icl.figures.drawing import Records
from icl.figures.giannou import outputs
from icl.figures.giannou.outputs import LOST, Arrays

AFFINE = 1e-9  # rounding, of the output's size


class Fig4(outputs.Outputs):
    caption = (
        "Figure 3 with the query's first coordinate in +-100. Without a mask the query token enters its own "
        "sum, and the output is a polynomial of degree up to 3^l in the query (3^l - 2 for the scalar "
        "family): it leaves the line. With a mask it is exactly affine in the query, and what departs is "
        "the clip's part alone (purple: the same weights, entries clipped to +-10 after each layer). "
        "Newton's output is linear in the query at every step. Panels show 1.3 times the line's range."
    )

    far = True

    def claims(self, records: Records) -> list[Claim]:
        arrays = outputs.arrays_of(records)
        depths = arrays["depths_L"].tolist()
        masked = {f"{depth} layers": _curvature(arrays, depth) for depth in depths}
        clipped = {
            f"{said}, {depth} layers": float(_departure(arrays, mask, depth, "clipped").min())
            for mask, said in outputs.MASKS.items()
            for depth in depths
        }
        of_masked = [value for key, value in clipped.items() if key.startswith(outputs.MASKS["masked"])]
        unclipped = {
            f"masked without the clip, {depth} layers": float(
                _departure(arrays, "masked", depth, "same").max()
            )
            for depth in depths
        }
        return [
            Claim.of(
                "out of distribution LSA, without a mask, does not follow the linear function, from two "
                "layers on (N(0, I))",
                *outputs.lost_beyond(arrays, [outputs.run_name("unmasked", L) for L in depths if L > 1]),
            ),
            Claim.of(
                "with the query masked the output is affine in the query, whatever the weights: nothing "
                "departs",
                masked,
                tried(list(masked.values())).below(
                    AFFINE, f"second differences below {AFFINE:g} of the output, rounding"
                ),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "clipping activations to +-10 makes even masked LSA, which is affine, lose the line out of "
                "distribution",
                clipped | unclipped,
                outputs.with_control(
                    sampled(of_masked).above(
                        LOST,
                        f"masked: distance at the edges above {LOST:.0%} of the line's size, in every seed "
                        "(smallest shown); without the clip below it (largest shown), or the verdict is "
                        "undecided",
                    ),
                    max(unclipped.values()),
                ),
                whose="project",
                remarks=["Without a mask the clip bounds what the query's own term does."],
            ),
        ]


def _departure(arrays: Arrays, mask: str, depth: int, what: str) -> np.ndarray:
    return outputs.departure(arrays, arrays[f"{outputs.run_name(mask, depth)}_{what}_RG"])


def _curvature(arrays: Arrays, depth: int) -> float:
    """Largest second difference of every group's mean over its largest value."""
    y_RKG = arrays[f"{outputs.run_name('masked', depth)}_RKG"][..., outputs.range_mask(arrays, far=True)]
    return float(abs(np.diff(y_RKG, 2, axis=-1)).max() / abs(y_RKG).max())
