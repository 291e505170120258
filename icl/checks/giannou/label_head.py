"""Which head takes linear attention without a mask below the scalar family: the one that reads the label.

Rotations and signs leave heads that are multiples of the identity on the blocks x, y and 1 of a token. The
scalar family has those whose Q reads x. Added to it: T_yy = c |y|^2 / n, which scales the labels by a number
that depends on their size, and T_xy, which moves covariates by labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks.giannou.support import block_heads
from icl.checks.giannou.support.block_heads import SCALARS
from icl.checks.numbers import finding, sampled, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.theory.quadratic import EPSILON

SIGMAS = 3.291  # a two-sided 99.9 % interval
FRESH = 30  # prompts that heads are judged on, for each that they are fitted on
COMPARED = 50  # prompts on which two ways to the loss are compared
REMARKS = [
    "The head that reads the label lowers the loss; the one that moves covariates by labels does not. So the "
    "difference between the scalar family and free heads is not a better polynomial in S', but a scale that "
    "depends on |y|^2 / n, an estimate of |w|^2: the prediction is no longer linear in w.",
]


@dataclass(eq=False)
class LabelHead:
    """Settings: sizes, layers, number of prompts on which the heads are fitted (`samples`; they are compared
    on FRESH times as many others), seed. x and w are N(0, I), no noise."""

    reference = "icl, beside section 6, linear regression, and eq. (3.1a) without a mask"
    claim = (
        "This project's statement: without a mask, a head that reads the label, T_yy = c |y|^2 / n, lowers "
        "the loss of as many layers of the scalar family."
    )

    dim: int = integer(5, 1, 16, "the fits take minutes")
    context: int = integer(25, 2, 1000)
    layers: int = integer(2, 2, 3, "the fits take minutes")
    seed: int = integer(0, 0)
    samples: int = integer(3000, 500, 20_000, "the fits take minutes")

    def __post_init__(self) -> None:
        validate(self)
        if self.context <= self.dim:
            raise InputError(f"check.context={self.context}: must be above check.dim={self.dim}")

    def measure(self) -> Finding:
        sizes = self.dim, self.context
        prompts = block_heads.draw_prompts(generator(self.seed, "search"), *sizes, self.samples)
        fresh = block_heads.draw_prompts(generator(self.seed, "check"), *sizes, FRESH * self.samples)
        few = block_heads.draw_prompts(generator(self.seed, "control"), *sizes, COMPARED)
        scalars = block_heads.fitted(SCALARS, self.layers, prompts)
        label = block_heads.fitted((*SCALARS, "yy"), self.layers, prompts, scalars)
        moved = block_heads.fitted((*SCALARS, "xy"), self.layers, prompts, scalars)
        with torch.no_grad():
            plain_B, label_B, moved_B = (block_heads.losses(*of, fresh) for of in (scalars, label, moved))
            by_gram_B = block_heads.losses(*label, few)
        by_heads_B = block_heads.losses_by_heads(*label, few)
        gain, error = _gain(plain_B, label_B)
        other, other_error = _gain(plain_B, moved_B)
        off = float(((by_gram_B - by_heads_B).abs() / (by_gram_B + 1)).max())
        return finding(
            [
                sampled(gain=gain)
                .means("loss of the scalar layers minus that with the head T_yy, on the same prompts")
                .above(SIGMAS * error, "the claim, 99.9 % interval", otherwise="undecided"),
                tried(off=off)
                .means("largest relative difference of the loss from that of the model with three heads")
                .at_most(1e4 * EPSILON * 3**self.layers, "rounding"),
                sampled(
                    gain_stderr=error,
                    scalar_loss=float(plain_B.mean()),
                    scalar_loss_stderr=float(plain_B.std()) / len(plain_B) ** 0.5,
                    label_loss=float(label_B.mean()),
                    label_loss_stderr=float(label_B.std()) / len(label_B) ** 0.5,
                    moved_gain=other,
                    moved_gain_stderr=other_error,
                ).means(
                    scalar_loss="loss of the scalar layers fitted",
                    label_loss="loss with the head T_yy",
                    moved_gain="loss of the scalar layers minus that with the head T_xy",
                ),
            ],
            Control(
                "the gain, less its interval, of the head T_xy, which moves covariates by labels",
                other - SIGMAS * other_error,
                other <= SIGMAS * other_error,
            ),
            notes=["Losses are divided by d. All heads are fitted on the same prompts and judged on others."],
            remarks=REMARKS,
        )


def _gain(plain_B: torch.Tensor, other_B: torch.Tensor) -> tuple[float, float]:
    gain_B = plain_B - other_B
    return float(gain_B.mean()), float(gain_B.std()) / len(gain_B) ** 0.5
