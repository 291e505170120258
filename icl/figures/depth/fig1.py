"""Figure 1 of depth: risk against context length on isotropic covariates, limits and trained layers.

A context lengths alpha = P / D, L numbers of layers.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from icl.errors import reals, whole
from icl.figures.arrays import metric
from icl.figures.claims import Claim, exact, sampled
from icl.figures.depth.computed import own
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, RED, log_axis
from icl.theory.depth.steps import marchenko_pastur, shared, wishart
from icl.theory.rationals import rational
from icl.theory.roots import least
from icl.theory.wishart import best_polynomial

LAYERS = {1: GREY, 2: ORANGE, 4: BLUE, 8: GREEN}
ALPHAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)  # of the limit
PRINTED_A = (1 + np.array(ALPHAS)) ** -2.0
DEPTH, LAST = 2, 0.25  # layers trained; share of the logged losses whose mean is the trained risk
RATES = {"shared": 1 / 32, "separate": 1 / 16}  # of SGD, over D


@dataclass(eq=False)
class Fig1(Figure):
    """Records: `exact`, the limits in D and the optima at D; trained layers of each kind and alpha."""

    trained: Sequence[float]
    dim: int
    steps: int
    layout = Layout(("limit", "trained"), (3.2, 2.6))

    def __post_init__(self) -> None:
        self.trained = reals("figure.trained", self.trained, None, 0, open_low=True)
        whole("figure.dim", self.dim, 2, 64)
        whole("figure.steps", self.steps, 8)

    def runs(self, runner: Runner) -> Records:
        ones = [1.0] * self.dim
        settings = {
            **{"task.dim": self.dim, "task.eigenvalues": ones, "task.task_eigenvalues": ones},
            **{"train.steps": self.steps, "train.log_every": max(1, self.steps // 200), "train.clip": 1.0},
            **{"seeds": [0], "callbacks": "none", "model.layers": DEPTH},
        }
        found = {"exact": runner.store("depth/fig1", asdict(self), self._exact)}
        for alpha in self.trained:
            for kind, rate in RATES.items():
                layers = {"optimizer.lr": self.dim * rate, "model.shared": kind == "shared"}
                given = {"task.context": self._context(alpha), **layers, **settings}
                found[f"{kind} {alpha:g}"] = runner.train("depth/rotated", given)
        return found

    def _context(self, alpha: float) -> int:
        return max(1, round(alpha * self.dim))

    def _exact(self) -> dict[str, np.ndarray]:
        limits = [marchenko_pastur(rational(a), 2 * max(LAYERS) + 1) for a in ALPHAS]
        at_dim = [wishart(self.dim, self._context(a), 2 * DEPTH + 1) for a in self.trained]
        return {
            "shared_LA": np.array([[float(least(shared(m, L))[1]) for m in limits] for L in LAYERS]),
            "separate_LA": np.array([1 / np.power.outer(ALPHAS, range(L + 1)).sum(1) for L in LAYERS]),
            "shared_at_dim": np.array([float(least(shared(m, DEPTH))[1]) for m in at_dim]),
            "separate_at_dim": np.array([float(best_polynomial(m, DEPTH)[1]) for m in at_dim]),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (limit, trained) = records["exact"].weights, panels.values()
        for i, (L, color) in enumerate(LAYERS.items()):
            limit.plot(ALPHAS, arrays["separate_LA"][i], color=color, label=f"L = {L}")
            limit.plot(ALPHAS, arrays["shared_LA"][i], "--", color=color)
        limit.plot([], [], "--", color=GREY, label="shared")
        limit.plot(ALPHAS, PRINTED_A, ":", color=RED, label="L = 1, printed")
        for kind, color, style in (("shared", ORANGE, "--"), ("separate", BLUE, "-")):
            trained.plot(self.trained, arrays[f"{kind}_at_dim"], style, color=color, label=f"{kind}, least")
            ends = self._ends(records, kind)[0]
            trained.plot(self.trained, ends, "o", color=color, label=f"{kind}, trained")
        limit.set(title="$D \\to \\infty$", ylabel="risk")
        trained.set(title=f"D = {self.dim}, L = {DEPTH}")
        for axes in panels.values():
            axes.set(xlabel="$\\alpha = P / D$", xscale="log")
            log_axis(axes)
            axes.legend(loc="lower left")
        trained.set_xticks(self.trained, [f"{alpha:g}" for alpha in self.trained])
        trained.set_xticks([], minor=True)

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        ratio_A, least_A = arrays["shared_LA"][0] / PRINTED_A, arrays["shared_at_dim"]
        ends = {kind: self._ends(records, kind) / least_A for kind in RATES}
        names = ("ratio to them", "standard error")
        return [
            Claim.of(
                "one layer has the loss (1 + alpha)^-2",
                {"ratios of the least risk to it": ratio_A.tolist()},
                exact(ratio_A).at_most(1.0, "least risk not above it at every alpha"),
                expected="fails",
                trained=False,
            ),
            Claim.of(
                "trained shared layers end at the best shared ones",
                dict(zip(names, ends["shared"].tolist(), strict=True)),
                sampled(ends["shared"][0], 2 * ends["shared"][1]).below(1.1, "95 % intervals below 1.1"),
            ),
            own(
                "trained separate layers end below the best shared ones",
                dict(zip(names, ends["separate"].tolist(), strict=True)),
                sampled(ends["separate"][0], 2 * ends["separate"][1]).below(1.0, "95 % intervals below 1"),
                trained=True,
            ),
        ]

    def _ends(self, records: Records, kind: str) -> np.ndarray:
        """Return the means of the last losses, each of fresh contexts, and their standard errors."""
        found = []
        for alpha in self.trained:
            losses_T = metric(records[f"{kind} {alpha:g}"], "loss")[1][0]
            last_T = losses_T[-max(2, int(LAST * len(losses_T))) :]
            found.append((last_T.mean(), last_T.std(ddof=1) / len(last_T) ** 0.5))
        return np.array(found).T
