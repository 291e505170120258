"""lds, section 5, after (17): the inverse Hessian by an "order-one Neumann series", H^-1 ~ 2 I - H.

H (2 I - H) = I - (I - H)^2, so the relative error of 2 I - H is the largest (1 - h)^2 over the eigenvalues h
of H: small where all are near 1, and above 1 where one is above 2, where the series diverges. H has the units
of y^2. H = (1/N) sum of ybar_t ybar_t^T over the context, of simulated sequences.

B sequences, s window.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.lds.support.pcg_distances import median_interval
from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.numbers import finding, sampled, tried
from icl.checks.sequential import ALPHA
from icl.checks.settings import fits_in_memory, integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.tasks.dynamical_system import gram_prompts
from icl.theory.quadratic import EPSILON

GOOD = 0.5  # of H^-1: an approximation that is off by more than half is none


@dataclass(eq=False)
class Neumann(NoisySequences):
    """Settings: setting, window s, length T, dim, seed, simulated sequences (`samples`), noise."""

    reference = "Section 5, after eq. (17)"
    claim = "The inverse Hessian of L_AR(s) is close to 2 I - H, within half of it for half of the sequences."

    window: int = integer(2, 1, 6, "s is at most 6 here")
    samples: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        fits_in_memory(self.samples, 20, self.length * self.dim)
        self.law = self.law_at(self.window)

    def measure(self) -> Finding:
        y_RBT = self.law.sequences([generator(self.seed, "eval")], self.samples)
        H_BSS = gram_prompts(y_RBT, self.window).gram_RBPP[0, :, : self.window, : self.window]
        h_BS = torch.linalg.eigvalsh(H_BSS)
        error_B, scaled_B = relative_error(h_BS), relative_error(h_BS / h_BS.mean(1, keepdim=True))
        near_B = relative_error((1 + h_BS / h_BS.amax(1, keepdim=True)) / 2)
        low, high = median_interval(error_B, ALPHA / 2)
        median, scaled = float(error_B.median()), float(scaled_B.median())
        eye_SS = torch.eye(self.window, dtype=torch.float64)
        off_B = torch.linalg.matrix_norm(eye_SS - H_BSS @ (2 * eye_SS - H_BSS), ord=2) - error_B
        return finding(
            [
                sampled(median_error=median)
                .means("median over sequences of the relative error of 2 I - H as the inverse of H")
                .at_most(
                    GOOD,
                    "an approximation by half; 99.9 % interval",
                    half_width=max(high - median, median - low),
                ),
                tried(identity_error=float((off_B.abs() / (1 + h_BS[:, -1]) ** 2).max()))
                .means("largest difference of |I - H (2 I - H)| from the largest (1 - h)^2, relative")
                .at_most(EPSILON * 64 * self.window**2, "rounding of products of s x s matrices"),
                sampled(
                    median_error_scaled=scaled,
                    share_above_2=float((h_BS[:, -1] >= 2).double().mean()),
                    median_least_eigenvalue=float(h_BS[:, 0].median()),
                    median_largest_eigenvalue=float(h_BS[:, -1].median()),
                ).means(
                    median_error_scaled="same median where each sequence is scaled to a mean eigenvalue of 1",
                    share_above_2="share of the sequences for which the Neumann series diverges",
                    median_least_eigenvalue="median of the least eigenvalue of H",
                    median_largest_eigenvalue="median of the largest eigenvalue of H",
                ),
            ],
            Control(
                "the same error for (I + H / |H|) / 2, whose eigenvalues are from 1/2 to 1",
                near := float(near_B.median()),
                near <= GOOD,
            ),
            remarks=[
                "The step H^-1 ~ 2 I - H depends on the units of y, because H has those of y^2. Its relative "
                f"error is (1 - h)^2, in the median {median:.2g} here, and {scaled:.2g} where each sequence "
                "is scaled to a mean eigenvalue of 1.",
            ],
        )


def relative_error(h_BS: Tensor) -> Tensor:
    """Return |H^-1 - (2 I - H)| relative to H^-1, in the norm of H: the largest (1 - h)^2."""
    return (1 - h_BS).square().amax(1)
