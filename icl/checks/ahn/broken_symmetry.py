"""ahn, beside Theorem 4: off S training of eq. (11) can escape along a valley that has no lowest point.

Some starts of larger initial scale end with one direction u apart from all others: of the last B the scalar
along u grows without bound and of the last A it goes to 0. Along this valley the risk falls to a limit, which
is above the best point of S. A statement of this project's own, for x ~ N(0, Sigma), w ~ N(0, Sigma^{-1}),
where Sigma drops out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support.critical_set import no_minimum, track_starts
from icl.checks.ahn.support.odd_direction import OddDirection, WeightedPrompts
from icl.checks.numbers import Numbers, finding, sampled, searched, tried
from icl.checks.settings import HELD, fits_in_memory, in_range, integer, search_starts, validate
from icl.checks.verdict import CONFIDENCE, QUANTILE, Control, Finding
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk

WAY = (0.3, 0.1, 0.03, 0.01)  # of 1/b', to the limit
AT_LIMIT = WAY[-1]
INTERVAL = f"an interval of {CONFIDENCE:.1%} on prompts other than those of the fit"
CURVED = 0.001  # what differences of gradients cannot produce where a Hessian has no such eigenvalue
CURVATURE = "differences of gradients err by less than .001 of the diagonal"


@dataclass(eq=False)
class BrokenSymmetry:
    """Settings: dimension, context length, layers, weighted prompts to fit the scalars on, fresh ones to
    measure the risk on (`samples`), starts of the search on S, seed of all draws."""

    dim: int = integer(5, 2, 10, "a prompt takes dim^3 operations")
    context: int = integer(10, 1)
    layers: int = integer(3, 2, 3, "deeper stacks take many more weighted prompts")
    prompts: int = integer(4000, 300)
    samples: int = integer(20_000, 1000)
    starts: int = search_starts(16)
    seed: int = integer(0, 0)

    reference = "icl, beside Theorem 4 and section 6"
    claim = (
        "Off the set S of Theorem 4 the risk of eq. (11) has a valley without a minimum: with one direction "
        "u apart from the others, it falls as the scalar of the last B along u grows without bound, to a "
        "limit above the lowest minimum on S; across the valley it curves upwards in every other direction."
    )

    def __post_init__(self) -> None:
        validate(self)
        each = 4 * self.layers * self.dim**2
        in_range("check.prompts", self.prompts, 300, max(300, HELD // each), "they fill the memory")
        fits_in_memory(self.samples, 1000, each)
        self.family = OddDirection(self.dim, self.layers)

    def measure(self) -> Finding:
        risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)
        minima = risk.minimise(generator(self.seed, "search"), self.starts, track_starts)
        if not minima:
            return no_minimum(starts=self.starts)
        best, prompts, fresh = minima[0], self._draw("train", self.prompts), self._draw("eval", self.samples)
        theta_V, along = self.family.begin(best, prompts, WAY[0]), {}
        for eps in WAY:
            theta_V, along[f"{1 / eps:.3g}"] = self.family.fit(prompts, theta_V, eps)
        limit, limit_stderr, slope, slope_stderr = self.family.slope(fresh, theta_V, AT_LIMIT)
        curvature = self.family.curvatures(prompts, theta_V, AT_LIMIT)
        M = 2 * self.layers - 1
        return finding(
            [
                falls(slope / limit, slope_stderr / limit),
                sampled(excess=limit / best.risk - 1)
                .means("risk in the limit over the lowest minimum found on S, minus 1")
                .above(0.0, INTERVAL, half_width=QUANTILE * limit_stderr / best.risk),
                tried(least_curvature=min(curvature.values()))
                .means("least eigenvalue of the Hessian across the valley, its diagonal scaled to 1")
                .above(CURVED, CURVATURE, otherwise="undecided"),
                sampled(
                    slope_stderr=slope_stderr / limit,
                    excess_stderr=limit_stderr / best.risk,
                    limit_risk=limit,
                    limit_risk_stderr=limit_stderr,
                ).means(limit_risk="risk in the limit"),
                tried(
                    least_curvature_by_block=curvature,
                    fitted_risk_by_scalar=along,
                    others_at_limit=theta_V[:M].tolist(),
                    along_u_at_limit=theta_V[M:].tolist(),
                ).means(
                    least_curvature_by_block="least eigenvalue on each block of directions that rotations "
                    "about u keep",
                    fitted_risk_by_scalar="least risk on the prompts of the fit, by the scalar of the last B "
                    "along u",
                    others_at_limit="scalars orthogonal to u in the limit, of each A and then of each B",
                    along_u_at_limit="scalars along u in the limit, of each A, the last times the square of "
                    "that of the last B, and of each B but the last",
                ),
                searched(best_on_s=best.risk).means("exact risk of the lowest minimum found on S"),
            ],
            self._control(best.a_L, best.b_L, fresh),
            notes=[
                "The scalars are fitted on some weighted prompts; the risk and its slope are those of fresh "
                "ones at these scalars. One direction u is apart; more may be. Longer contexts take more "
                "of both (check.prompts, check.samples).",
                "Beyond an infinite scalar lies its other sign, which no training reaches: there the risk "
                "falls further.",
            ],
        )

    def _draw(self, role: str, count: int) -> WeightedPrompts:
        return WeightedPrompts.draw(generator(self.seed, role), self.dim, self.context, self.layers, count)

    def _control(self, a_L: np.ndarray, b_L: np.ndarray, fresh: WeightedPrompts) -> Control:
        """Judge the same derivative at the lowest minimum on S, where nothing falls along this scalar."""
        eps, step = 1 / b_L[-1], AT_LIMIT / b_L[-1]
        scalars_M = np.concatenate([-a_L, b_L])
        ends = []
        for at in (eps + step, eps - step):
            theta_V = np.concatenate([scalars_M, scalars_M[:-1]])
            theta_V[3 * self.layers - 2] = -a_L[-1] / at**2
            ends.append(fresh.terms(self.family.matrices(torch.from_numpy(theta_V), at)))
        value, stderr = fresh.mean((ends[0] - ends[1]) / (2 * step))
        risk = float(((ends[0] + ends[1]) / 2).mean())
        judged = falls(value / risk, stderr / risk)
        return Control(
            "the same derivative at the lowest minimum on S, where it is 0",
            value / risk,
            judged.verdict != "holds",
        )


def falls(slope: float, stderr: float) -> Numbers:
    """Judge the derivative of the risk in 1/b': positive where the risk falls as b' grows."""
    return (
        sampled(slope=slope)
        .means(
            "derivative of the risk in 1/b' at infinity, b' the scalar of the last B along u, over the risk"
        )
        .above(0.0, INTERVAL, half_width=QUANTILE * stderr)
    )
