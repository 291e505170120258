"""lu: at finite d the interpolation threshold is at n = d (d + 1) prompts, the number of weights, not at d^2.

N prompts, P = D (D + 1) weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from icl import quantiles
from icl.checks.lu.support.pretraining import Array, Pretraining
from icl.checks.lu.support.settings import Ratios
from icl.checks.numbers import Numbers, finding, sampled, tried
from icl.checks.settings import integer
from icl.checks.verdict import CONFIDENCE, Control, Finding
from icl.progress import track
from icl.random import generator

SOURCE = "half of the draws: the median of the ratio is 1; a 99.9 % interval of the share"
RANKS = 5  # draws of which the singular values are computed
RANK = "rounding of a singular value that is 0: 2^-52 d (d + 1) times the largest"


@dataclass(eq=False)
class Threshold(Ratios):
    """Settings: of Ratios; dimension, and `draws` of tasks and prompts."""

    dim: int = integer(6, 2, 64, "the draws take days")
    draws: int = integer(400, 20, 10**6, "they take days")

    reference = "this project, beside lu's threshold at tau = 1"
    claim = "At finite d the error on new tasks peaks at n = d (d + 1), and not at n = d^2."

    def measure(self) -> Finding:
        d, weights = self.dim, self.dim * (self.dim + 1)
        sizes = Pretraining.at(d, self.alpha, self.kappa, 1.0, self.rho)
        counts = [d * d, weights, weights + d]
        rng = generator(self.seed, "check")
        draws = track(range(self.draws), "draws", self.draws)
        error_TN = np.array([[replace(sizes, prompts=n).errors(rng)[0] for n in counts] for _ in draws])
        squared_T, peak_T, after_T = error_TN.T
        rank, control = (
            min(_least_singular_value(replace(sizes, prompts=n), rng) for _ in range(RANKS))
            for n in (weights, d * d + 1)
        )
        return finding(
            [
                self._share(above_d_squared=peak_T > squared_T).means(
                    "share of draws in which the error is larger at d (d + 1) prompts than at d^2"
                ),
                self._share(above_more=peak_T > after_T).means(
                    "share of draws in which it is larger at d (d + 1) prompts than at d more"
                ),
                tried(least_singular_value=rank)
                .means("least singular value of d (d + 1) prompts' features, over the largest")
                .above(2.0**-52 * weights, RANK),
                sampled(median_ratio=float(np.median(peak_T / squared_T))).means(
                    "median ratio of the error at d (d + 1) prompts to that at d^2"
                ),
            ],
            Control(
                "least singular value of d^2 + 1 prompts: 0 were d^2 the most that can be fitted",
                control,
                control > 2.0**-52 * weights,
            ),
        )

    def _share(self, **higher: Array) -> Numbers:
        ((name, is_higher_T),) = higher.items()
        share, (low, high) = float(is_higher_T.mean()), self._interval(is_higher_T)
        return sampled(**{name: share}).above(0.5, SOURCE, half_width=max(share - low, high - share))

    def _interval(self, is_higher_T: Array) -> tuple[float, float]:
        return quantiles.proportion((1 - CONFIDENCE) / 2, int(is_higher_T.sum()), self.draws)


def _least_singular_value(sizes: Pretraining, rng: np.random.Generator) -> float:
    """Return that of the matrix of features, over the largest: above 0, any labels of so many prompts are
    fitted exactly, and those of one more are not."""
    w_KD = sizes.draw_tasks(rng, sizes.tasks or 1)
    x_ND, h_NH, _ = sizes.draw_prompts(rng, w_KD[rng.integers(len(w_KD), size=sizes.prompts)])
    values = np.linalg.svd((x_ND[:, :, None] * h_NH[:, None]).reshape(len(x_ND), -1), compute_uv=False)
    return float(values[-1] / values[0])
