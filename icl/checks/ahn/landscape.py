"""ahn, section 6: which of the critical points does training of eq. (11) reach?

"It will be interesting to analyze the set of all critical points [...] as well as quantify their
(sub)optimality": section 5.1 has the parameters converge to a point of S, and the loss to the global minimum.
Asked of many random small initialisations of several sizes, all trained at once, each on weighted prompts of
its own that show the risk's tail (icl.tasks.tilted): does each end near S; at which local minimum on S, by
exact descent from its projection; and does any have a risk below the best known on S?

The starts are normal in the paper's coordinates, as in Figures 3 to 5. All else is whitened, where Sigma
drops out. The risk at an end point is sampled on fresh weighted prompts.
K starts, B prompts, L layers, D covariates, V = (2L - 1) D^2 variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import beta, norm
from torch import Tensor

from icl.checks.ahn.support.critical_set import nearest_point, starts_tracked, whitened
from icl.checks.ahn.support.ensemble import Risk, descend_each
from icl.checks.ahn.support.judge_critical_set import minimum_below
from icl.checks.settings import HELD, fits_in_memory, in_range, law_of
from icl.checks.verdict import CONFIDENCE, Bound, Control, Finding
from icl.errors import InputError, reals
from icl.models.gram import sparse_expected_risk
from icl.progress import track
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.tasks.tilted import draw_tilted, inflations_for
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum
from icl.theory.distance import distance_to_identity
from icl.weighted import stratified_error

MOST = 0.5
NEAR_S = 0.1  # as in Figures 3 to 5
DISTURBED = 0.02
SAME = 1e-4  # relative difference of risks of one and the same minimum
ROUGH, ROUGH_ITERATIONS = 3, 100  # first a third of the prompts, which saves half of the time
SEARCHES = 64  # from which the minima on S are known


class End(NamedTuple):
    """Where one start ended: how far from S, at which risk, and below which minimum on S."""

    distance: float
    risk: float
    stderr: float
    minimum: float


@dataclass(eq=False)
class Landscape:
    """Settings: dimension, context length, layers, random initialisations (`starts`, shared out among the
    standard deviations `init_stds`), weighted prompts that each is trained on, iterations, fresh ones that
    each is measured on (`samples`), seed of all draws."""

    dim: int = 5
    context: int = 10
    layers: int = 3
    starts: int = 64
    init_stds: Sequence[float] = (1e-4, 0.1, 0.2, 0.3)
    prompts: int = 1000
    iterations: int = 100
    samples: int = 5000
    seed: int = 0

    reference = "Section 5.1 and section 6, on the landscape; Theorem 4"
    claim = (
        "Training of eq. (11) from small random initialisations converges to the global minimum: of every "
        "size, most starts end at the least minimum on S."
    )

    def __post_init__(self) -> None:
        in_range("check.dim", self.dim, 1, 10, "all starts are trained at once")
        in_range("check.layers", self.layers, 2, 3, "deeper stacks take many more weighted prompts")
        in_range("check.starts", self.starts, 1, 1024, "all starts are trained at once")
        in_range("check.iterations", self.iterations, 1, 100_000, "training takes days")
        fits_in_memory(self.samples, 1000, 4 * self.layers * self.dim**2)
        count = len(self.init_stds) if isinstance(self.init_stds, Sequence) else 1
        self.init_stds = reals("check.init_stds", self.init_stds, count, 0, open_low=True)
        if not 0 < count <= self.starts:
            raise InputError(f"check.init_stds: has {count} sizes for {self.starts} starts")
        self.law = law_of(self.dim, self.context, self.seed, task_covariance="inverse")  # refuses the rest
        most = max(300, HELD // (self.starts * self.dim**2))
        in_range("check.prompts", self.prompts, 300, most, "those of all starts fill the memory")
        self.inflations = inflations_for(3**self.layers - 1, self.context, self.dim)

    def measure(self) -> Finding:
        risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)
        minima = risk.minimise(generator(self.seed, "search"), SEARCHES, starts_tracked)
        known, best = [minimum.risk for minimum in minima], minima[0].risk
        ends = [self._end(k, *stack) for k, stack in enumerate(self._train())]
        quantile = float(norm.isf((1 - CONFIDENCE) / (2 * self.starts)))
        below = sum(end.risk + quantile * end.stderr < best for end in ends)
        of_size = [
            [end.minimum / best - 1 < SAME for end in ends[i :: self._sizes]] for i in range(self._sizes)
        ]
        shares = [(sum(at) / len(at), *share_interval(sum(at), len(at))) for at in of_size]
        reached = Counter(_named(end.minimum, known) for end in ends)
        distances, least = [end.distance for end in ends], min(ends, key=lambda end: end.risk)
        share, low, high = min(shares)
        return Finding(
            "undecided",  # the least minimum is one that a search found; another training may end elsewhere
            {
                "share_at_best": share,
                "share_low": low,
                "share_high": high,
                "at_best_by_init_std": [sum(at) for at in of_size],
                "starts_by_init_std": [len(at) for at in of_size],
                "reached_by_risk": dict(sorted(reached.items(), key=lambda pair: float(pair[0]))),
                "minima_on_s": known,
                "best_on_s": best,
                "below_best_on_s": below,
                "least_risk_over_best": least.risk / best,
                "least_risk_over_best_stderr": least.stderr / best,
                "median_distance": float(np.median(distances)),
                "largest_distance": max(distances),
                "share_near_s": float(np.mean(np.array(distances) < NEAR_S)),
                "starts": self.starts,
            },
            Bound(
                MOST,
                "half of the starts, of the size with the least share, with the interval of Clopper and "
                f"Pearson. Risks below the best on S: intervals of {CONFIDENCE:.1%} for all together",
                "share_at_best",
                ">",
            ),
            self._control(minima[0]),
            notes=[
                f"Each start had {ROUGH_ITERATIONS} iterations of L-BFGS on a third of its {self.prompts} "
                f"weighted prompts and {self.iterations} on all: its distance to S is also that of so few "
                "prompts. Risks at the end points are sampled.",
                "reached_by_risk: exact risk of the local minimum on S to which the projection of an end "
                f"point descends, and how many do. share_near_s: every Dist below {NEAR_S:g}.",
                "The best minimum on S is the best that a search found: global optimality is left open, as "
                "in the paper, and no training decides it.",
                "The paper trains with Adam, on plain prompts, in coordinates that are not white. Where this "
                "training ends elsewhere it says nothing of that one, which `icl figure figure=ahn/fig3 "
                "scale=paper` repeats.",
            ],
            remarks=self._remarks(of_size, reached, below, best),
            kinds={"*": "sampled", "minima_on_s": "searched", "best_on_s": "searched", "starts": "exact"},
        )

    def _train(self) -> list[tuple[Tensor, Tensor]]:
        """Whitened A_LDD and B_LDD where each start ends."""
        W_KBDD, weight_KB = (
            torch.stack(parts) for parts in zip(*map(self._prompts, range(self.starts)), strict=True)
        )
        S_KDDB = W_KBDD.movedim(1, -1).contiguous()

        def risk_on(prompts: int) -> Risk:
            def risk(theta_KV: Tensor, index: Tensor) -> Tensor:
                terms_KB = _risks(*self._matrices(theta_KV), S_KDDB[index, ..., :prompts])
                return (weight_KB[index, :prompts] * terms_KB).mean(1)

            return risk

        start_KV = torch.stack([self._start(k) for k in range(self.starts)])
        rough_KV, _ = descend_each(risk_on(self.prompts // ROUGH), start_KV, ROUGH_ITERATIONS, _tracked)
        end_KV, _ = descend_each(risk_on(self.prompts), rough_KV, self.iterations, _tracked)
        return list(zip(*self._matrices(end_KV), strict=True))

    def _start(self, k: int) -> Tensor:
        """Normal in the paper's coordinates."""
        shape = 2 * self.layers - 1, self.dim, self.dim
        normal_MDD = torch.from_numpy(generator(self.seed, "init", k).standard_normal(shape))
        A_LDD, B_LDD = (self.init_stds[k % self._sizes] * normal_MDD).tensor_split([self.layers])
        return torch.cat(whitened((A_LDD, B_LDD), self.law)).flatten()  # type: ignore[arg-type]

    @property
    def _sizes(self) -> int:
        return len(self.init_stds)

    def _prompts(self, k: int) -> tuple[Tensor, Tensor]:
        rng = generator(self.seed, "train", k)
        W_BDD, weight_B = draw_tilted(rng, self.context, self.dim, self.prompts, self.inflations)
        return torch.from_numpy(W_BDD), torch.from_numpy(weight_B)

    def _matrices(self, theta_KV: Tensor) -> tuple[Tensor, Tensor]:
        theta_KMDD = theta_KV.view(len(theta_KV), 2 * self.layers - 1, self.dim, self.dim)
        return theta_KMDD[:, : self.layers], theta_KMDD[:, self.layers :]

    def _end(self, k: int, A_LDD: Tensor, B_LDD: Tensor) -> End:
        W_BDD, weight_B = draw_tilted(
            generator(self.seed, "eval", k), self.context, self.dim, self.samples, self.inflations
        )
        S_1DDB = torch.from_numpy(W_BDD).movedim(0, -1).contiguous()[None]
        terms_B = weight_B * _risks(A_LDD[None], B_LDD[None], S_1DDB)[0].numpy()
        return End(
            float(torch.cat([distance_to_identity(M_LDD) for M_LDD in (A_LDD, B_LDD)]).max()),
            float(terms_B.mean()),
            stratified_error(terms_B, len(self.inflations)),
            minimum_below(nearest_point((A_LDD, B_LDD), self._white())),
        )

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
        excess = minimum_below(nearest_point((A_LDD, B_LDD), self._white())) / best.risk - 1
        return Control(
            f"excess over the best of the minimum found below the best itself, disturbed by {DISTURBED:.0%}",
            excess,
            excess < SAME,
        )

    def _white(self) -> LinearRegressionLaw:
        return law_of(self.dim, self.context, self.seed, covariance="identity", task_covariance="inverse")

    def _remarks(
        self, of_size: Sequence[Sequence[bool]], reached: Counter[str], below: int, best: float
    ) -> list[str]:
        often, count = reached.most_common(1)[0]
        lower = f"{below} of all have a risk below it" if below else "none has a risk below it"
        by_size = ", ".join(
            f"{sum(at)} of {len(at)} from std {std:g}"
            for std, at in zip(self.init_stds, of_size, strict=True)
        )
        return [
            f"At the best minimum known on S, of risk {best:.4g}, end {by_size}, and {lower}; most of all "
            f"({count} of {self.starts}) end at one of risk {float(often):.4g}. Which one is reached hangs "
            "on the size of the start. To come to S is not yet to come to its best point, so Dist near 0 "
            "says nothing of global optimality.",
        ]


def share_interval(count: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's, at CONFIDENCE."""
    tail = (1 - CONFIDENCE) / 2
    low = float(beta.ppf(tail, count, of - count + 1)) if count else 0.0
    high = float(beta.isf(tail, count + 1, of - count)) if count < of else 1.0
    return low, high


def _tracked(steps: range) -> Iterator[int]:
    return track(steps, "iterations of all starts", len(steps))


def _risks(A_KLDD: Tensor, B_KLDD: Tensor, S_KDDB: Tensor) -> Tensor:
    """(K, B): risk given each context, x and w ~ N(0, I)."""
    identity_KDD = torch.eye(A_KLDD.shape[-1], dtype=torch.float64).expand(len(A_KLDD), -1, -1)
    return sparse_expected_risk(A_KLDD, B_KLDD, S_KDDB, identity_KDD, identity_KDD)


def _named(risk: float, known: Sequence[float]) -> str:
    """The minimum as the search on S has it, where it has."""
    return next((f"{one:.6g}" for one in known if abs(risk / one - 1) < SAME), f"{risk:.6g}")
