"""ahn, beside Theorem 4: off S training of eq. (11) can escape along a valley that has no lowest point."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.critical_set import minima_on_s
from icl.checks.ahn.odd_direction import OddDirection, WeightedPrompts
from icl.checks.statement import OPEN, Measured, Sample, Statement, setting, sign
from icl.random import generator
from icl.theory.ahn.invariant_risk import PolynomialMinimum
from icl.theory.blurred import Undecided

WAY = (0.3, 0.1, 0.03, 0.01)  # of 1/b', to the limit
AT_LIMIT = WAY[-1]
STEP = 1e-4  # of 1/b' on S, relative


@dataclass
class BrokenSymmetry(Statement):
    """`prompts` are weighted ones on which the scalars are fitted, by halves; `samples` fresh ones on which
    the risk is measured; `starts` those of the search on S."""

    dim: int = setting(5, 2, 10, most=10, beyond="a prompt takes dim^3 operations")
    context: int = setting(10, 1)
    layers: int = setting(3, 2, 3, most=3, beyond="the risk's tail takes many more weighted prompts")
    prompts: int = setting(4000, 600, most=100_000, beyond="they fill the memory")
    samples: int = setting(20_000, 1000, most=500_000, beyond="they fill the memory")
    starts: int = setting(16, 1, most=10_000, beyond="the search takes hours")
    seed: int = setting(0, 0)

    paper, origin, where = "ahn", "icl", "icl, beside Theorem 4 and section 6"
    title = "A valley off S that has no lowest point"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x, in whitened coordinates"
    claim = (
        "Off the set S of Theorem 4 the risk of eq. (11) has a valley without a minimum: with one direction "
        "u apart from the others, it falls as the scalar of the last B along u grows without bound, to a "
        "limit above the lowest minimum on S; across the valley it curves upwards in every other direction."
    )
    formula = (
        r"A_\ell = a_\ell (I - u u^\top) + a'_\ell u u^\top,\ "
        r"B_\ell = b_\ell (I - u u^\top) + b'_\ell u u^\top:"
        r"\quad f \downarrow f_\infty > \min_{\mathcal{S}} f \text{ as } b'_{L-2} \to \infty"
    )
    tries = 0  # a search, and fits on thousands of prompts

    def expected(self) -> str:
        return "holds" if self.context > 1 else OPEN

    def measure(self, m: Measured) -> None:
        valley = OddDirection(self.dim, self.layers)
        best = minima_on_s(self.dim, self.context, self.layers, self.starts, self.seed)[0]
        fresh = self._draw("eval", self.samples)
        risk, slope = fresh.along(*_on_s(valley, best))
        seen = [over(risk, best.risk, 1), over(slope, risk.mean)]
        m.number("errors_on_s", seen, "risk over the exact one, minus 1, and slope at the best minimum on S")
        if any(sign(error) for error in seen):
            raise Undecided("the prompts miss the known risk on S: check.samples takes more of them")
        halves = [self._floor(valley, best, half, fresh) for half in range(2)]
        limit, slope = both([half[0] for half in halves]), both([half[1] for half in halves])
        curvature = both([Sample(half[2], 0.0) for half in halves])
        if sign(curvature) == -1:
            raise Undecided(
                "the fit ended where the risk curves downwards across the valley, not on its floor"
            )
        about = "relative slope of the least risk in 1/b' at infinity, b' the scalar of the last B along u"
        m.positive("slope", over(slope, limit.mean), about)
        _, off = fresh.along(*_on_s(valley, best, 1.1))
        m.control("the same at the best minimum on S, b' a tenth larger", over(off, best.risk), of="slope")
        m.positive("excess", over(limit, best.risk, 1), "risk in the limit over the best found on S, minus 1")
        about = "least eigenvalue of the Hessian across the valley, its diagonal scaled to 1"
        m.positive("least_curvature", curvature, about)
        m.note("the scalars are fitted on each half of the prompts; an error has their difference in it")
        m.note("beyond an infinite scalar lies its other sign, which no training reaches: there it falls on")

    def _draw(self, role: str, count: int, half: int = 0) -> WeightedPrompts:
        rng = generator(self.seed, role, half)
        return WeightedPrompts.draw(rng, self.dim, self.context, self.layers, count)

    def _floor(
        self, valley: OddDirection, best: PolynomialMinimum, half: int, fresh: WeightedPrompts
    ) -> tuple[Sample, Sample, float]:
        """Return the risk in the limit, its slope along the valley's floor, and the curvature across it. The
        floor is fitted at both ends: what the fit misses in the first order cancels."""
        prompts = self._draw("train", self.prompts // 2, half)
        theta_V = valley.begin(best, prompts, WAY[0])
        for eps in WAY:
            theta_V = valley.fit(prompts, theta_V, eps)
        ends = [
            valley.matrices(torch.from_numpy(valley.fit(prompts, theta_V, eps)), eps)
            for eps in (AT_LIMIT, -AT_LIMIT)
        ]
        return *fresh.along(ends, 2 * AT_LIMIT), valley.least_curvature(prompts, theta_V, AT_LIMIT)


def _on_s(valley: OddDirection, best: PolynomialMinimum, larger: float = 1.0) -> tuple[list[Tensor], float]:
    """Return points to either side of a minimum on S along 1/b', and what they are apart."""
    eps, step, ends = 1 / (larger * best.b_L[-1]), STEP / best.b_L[-1], []
    for at in (eps + step, eps - step):
        ends.append(valley.matrices(torch.from_numpy(valley.near_s(best, -best.a_L[-1] / at**2)), at))
    return ends, 2 * step


def both(halves: Sequence[Sample]) -> Sample:
    """Return the mean of two fits, measured on the same prompts: its error is theirs and that of the fit."""
    first, second = halves
    spread = abs(first.mean - second.mean) / 2
    return Sample((first.mean + second.mean) / 2, math.hypot(max(first.stderr, second.stderr), spread))


def over(value: Sample, unit: float, less: float = 0.0) -> Sample:
    return Sample(value.mean / unit - less, value.stderr / abs(unit))
