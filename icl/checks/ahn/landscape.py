"""ahn, section 6: which of the critical points does training of eq. (11) reach?

"It will be interesting to analyze the set of all critical points [...] as well as quantify their
(sub)optimality": section 5.1 has the parameters converge to a point of S, and the loss to the global minimum.
Many random small initialisations of several scales are trained at once, each on weighted prompts of its own
that show the tail of the risk (icl.tasks.tilted). Measured at each end: the distance from S; the local
minimum on S, by exact descent from the projection; and whether the risk is below the best known on S. The
paper trains otherwise (Adam, plain prompts): Figure 3 is about that.

L layers, D covariates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icl import quantiles
from icl.checks.ahn.support.critical_set import track_starts
from icl.checks.ahn.support.random_starts import ROUGH_ITERATIONS, RandomStarts, share_interval
from icl.checks.numbers import exact, finding, sampled, searched
from icl.checks.settings import HELD, fits_in_memory, in_range, integer, law_of, validate
from icl.checks.verdict import CONFIDENCE, Control, Finding
from icl.errors import InputError, reals
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum

MOST = 0.5
NEAR_S = 0.1  # as in Figures 3 to 5
DISTURBED = 0.02
SAME = 1e-4  # relative difference of risks of one and the same minimum
CONVERGED = 0.01  # a loss that falls by less in the last tenth of the iterations has converged
SEARCHES = 64  # from which the minima on S are known
ALL_AT_ONCE = "all starts are trained at once"
SOURCE = (
    f"half of the starts; intervals of Clopper and Pearson, of {CONFIDENCE:.1%} for all scales together, and "
    "likewise for the risks of all starts"
)


@dataclass(eq=False)
class Landscape:
    """Settings: dimension, context length, layers, random initialisations (`starts`, shared out among the
    standard deviations `init_stds`), weighted prompts that each is trained on, iterations, fresh ones that
    each is measured on (`samples`), seed of all draws."""

    dim: int = integer(5, 1, 10, ALL_AT_ONCE)
    context: int = integer(10, 1)
    layers: int = integer(3, 2, 3, "deeper stacks take many more weighted prompts")
    starts: int = integer(72, 1, 1024, ALL_AT_ONCE)
    init_stds: Sequence[float] = (1e-4, 0.1, 0.3)
    prompts: int = integer(1000, 300)
    iterations: int = integer(500, 1, 100_000, "training takes days")
    samples: int = integer(5000, 1000)
    seed: int = integer(0, 0)

    reference = "icl, beside section 5.1 and section 6; Theorem 4"
    claim = (
        "This project's statement: L-BFGS on weighted prompts, in whitened coordinates, trains eq. (11) from "
        "small random weights to a risk not above the least that is known on S, for every initial scale from "
        "most starts."
    )

    def __post_init__(self) -> None:
        validate(self)
        fits_in_memory(self.samples, 1000, 4 * self.layers * self.dim**2)
        count = len(self.init_stds) if isinstance(self.init_stds, Sequence) else 1
        self.init_stds = reals("check.init_stds", self.init_stds, count, 0, open_low=True)
        if not 0 < count <= self.starts:
            raise InputError(f"check.init_stds: has {count} sizes for {self.starts} starts")
        self.law = law_of(self.dim, self.context, self.seed, task_covariance="inverse")  # refuses the rest
        most = max(300, HELD // (self.starts * self.dim**2))
        in_range("check.prompts", self.prompts, 300, most, "those of all starts fill the memory")
        self.random_starts = RandomStarts(
            self.law, self.layers, self.starts, self.init_stds, self.prompts, self.iterations, self.seed
        )

    def measure(self) -> Finding:
        risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)
        minima = risk.minimise(generator(self.seed, "search"), SEARCHES, track_starts)
        known, best = [minimum.risk for minimum in minima], minima[0].risk
        trained = self.random_starts.train()
        ends = [self.random_starts.end(k, A, B, self.samples) for k, (A, B, _) in enumerate(trained)]
        converged = [one.fall < CONVERGED for one in trained]
        quantile = quantiles.normal((1 - CONFIDENCE) / (2 * self.starts))
        below = sum(end.risk + quantile * end.stderr < best for end in ends)
        sizes = len(self.init_stds)
        # What has not converged may still reach the best; else a start has, where its projection on S
        # descends to it or where its own risk is not shown to be above it.
        reached_best = [end.minimum / best - 1 < SAME for end in ends]
        may_reach = [
            at or not done or end.risk - quantile * end.stderr <= best
            for at, done, end in zip(reached_best, converged, ends, strict=True)
        ]
        of_size, may, done = (
            [each[i::sizes] for i in range(sizes)] for each in (reached_best, may_reach, converged)
        )
        shares = [(sum(at) / len(at), *share_interval(sum(at), len(at), sizes)) for at in may]
        reached = Counter(_named(end.minimum, known) for end in ends)
        distances, least = [end.distance for end in ends], min(ends, key=lambda end: end.risk)
        share, low, high = min(shares, key=lambda each: each[2])
        return finding(
            [
                # a lower risk may exist that no search found: a share above one half would not be enough
                sampled(share_high=high)
                .means(
                    "upper end, at one initial scale, of the interval of the share of starts that reach the "
                    "least known risk or have not converged"
                )
                .judged("fails" if high < MOST else "undecided", ">", MOST, SOURCE),
                sampled(
                    share_possible=share,
                    share_low=low,
                    converged_by_init_std=[sum(its) for its in done],
                    at_best_by_init_std=[sum(at) for at in of_size],
                    starts_by_init_std=[len(at) for at in of_size],
                    reached_by_risk=dict(sorted(reached.items(), key=lambda pair: float(pair[0]))),
                    below_best_on_s=below,
                    least_risk_over_best=least.risk / best,
                    least_risk_over_best_stderr=least.stderr / best,
                    median_distance=float(np.median(distances)),
                    largest_distance=max(distances),
                    share_near_s=float(np.mean(np.array(distances) < NEAR_S)),
                ).means(
                    share_possible="share of starts that end there or have not converged, at that scale",
                    share_low="lower end of the interval of that share",
                    converged_by_init_std="number of starts whose loss falls by less than 1% in the last "
                    "tenth of the iterations, by initial scale",
                    at_best_by_init_std="number of starts that end at the lowest minimum on S, by initial "
                    "scale",
                    starts_by_init_std="number of starts, by initial scale",
                    reached_by_risk="number of starts whose projection on S descends to a local minimum, "
                    "by its exact risk",
                    below_best_on_s="number of starts that end with a risk below the lowest minimum on S",
                    least_risk_over_best="least risk of an end point over the risk of the lowest minimum "
                    "on S",
                    median_distance="median over starts of the largest Dist of a layer's matrix from the "
                    "multiples of I, whitened",
                    largest_distance="largest Dist of a layer's matrix from the multiples of I, whitened, "
                    "over starts",
                    share_near_s="share of starts that end with every Dist below 0.1",
                ),
                searched(minima_on_s=known, best_on_s=best).means(
                    minima_on_s="exact risks of the local minima found on S",
                    best_on_s="exact risk of the lowest minimum found on S",
                ),
                exact(starts=self.starts).means("number of random starts"),
            ],
            self._control(minima[0]),
            notes=[
                *self._undecided(high, converged),
                "The paper trains with Adam, on plain prompts, in coordinates that are not whitened: `icl "
                "figure figure=ahn/fig3 scale=paper` repeats that.",
                f"Each start has {ROUGH_ITERATIONS} iterations of L-BFGS on a third of its {self.prompts} "
                f"weighted prompts and {self.iterations} on all of them; part of its distance from S is "
                "due to so few prompts. Risks at the end points are sampled.",
                "The lowest minimum on S is the lowest that a search found, of a risk that is exact: an end "
                "above it is no global minimum, and one at it need not be.",
            ],
            remarks=self._remarks(of_size, reached, below, best),
        )

    def _undecided(self, high: float, converged: Sequence[bool]) -> list[str]:
        if high < MOST:
            return []
        settings = f"check.starts={4 * self.starts} check.iterations={4 * self.iterations}"
        return [
            f"undecided: {sum(converged)} of {self.starts} starts have converged; `icl check "
            f"check=ahn/landscape {settings}` trains more of them for longer. That the lowest minimum "
            "known is global is not shown by any number of starts."
        ]

    def _control(self, best: PolynomialMinimum) -> Control:
        """Weights at the best minimum on S, disturbed: they must not be taken for another's."""
        rng, identity_DD = generator(self.seed, "control"), torch.eye(self.dim, dtype=torch.float64)
        scalars = (torch.from_numpy(-best.a_L), torch.from_numpy(best.b_L))
        A_LDD, B_LDD = (
            c_L[:, None, None]
            * (
                identity_DD
                + DISTURBED * torch.from_numpy(rng.standard_normal((len(c_L), *identity_DD.shape)))
            )
            for c_L in scalars
        )
        excess = self.random_starts.minimum_below(A_LDD, B_LDD) / best.risk - 1
        return Control(
            f"relative excess of the minimum that is reached from the best one, disturbed by {DISTURBED:.0%}",
            excess,
            excess < SAME,
        )

    def _remarks(
        self, of_size: Sequence[Sequence[bool]], reached: Counter[str], below: int, best: float
    ) -> list[str]:
        often, count = reached.most_common(1)[0]
        lower = f"{below} starts end below that risk" if below else "no start ends below that risk"
        by_size = ", ".join(
            f"{sum(at)} of {len(at)} with standard deviation {std:g}"
            for std, at in zip(self.init_stds, of_size, strict=True)
        )
        return [
            f"Starts that end at the lowest minimum found on S, of risk {best:.4g}: {by_size}; {lower}. "
            f"The minimum that most starts reach ({count} of {self.starts}) has risk {float(often):.4g}. "
            "Which minimum is reached depends on the initial scale. Convergence to S is not convergence "
            "to its best point, so a Dist near 0 does not show global optimality.",
        ]


def _named(risk: float, known: Sequence[float]) -> str:
    """Return the minimum as the search on S has it, where it has."""
    return next((f"{one:.6g}" for one in known if abs(risk / one - 1) < SAME), f"{risk:.6g}")
