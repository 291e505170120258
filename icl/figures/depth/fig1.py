"""Figure 1 of depth: risk against context length on isotropic covariates, limits and trained layers.

A context lengths alpha = P / D, L numbers of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from flint import fmpq

from icl.errors import reals, rising, whole
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

COLORS = GREY, ORANGE, BLUE, GREEN
DEPTH, LAST = 2, 0.25  # layers trained; share of the logged losses whose mean is the trained risk
RATES = {"shared": 1 / 32, "separate": 1 / 16}  # of SGD, over D


@dataclass(eq=False)
class Fig1(Figure):
    """Records: `exact`, the limits in D and the optima at D; trained layers of each kind and alpha."""

    layers: Sequence[int]
    alphas: Sequence[float]
    trained: Sequence[float]
    dim: int
    steps: int
    layout = Layout(("limit", "trained"), (3.2, 2.6))

    def __post_init__(self) -> None:
        self.layers = rising("figure.layers", self.layers, 1, 20)[: len(COLORS)]
        self.alphas = reals("figure.alphas", self.alphas, None, 0, open_low=True)
        self.trained = reals("figure.trained", self.trained, None, 0, open_low=True)
        self.dim, self.steps = whole("figure.dim", self.dim, 2, 64), whole("figure.steps", self.steps, 8)

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
                given: dict[str, object] = {
                    "task.context": self._context(alpha),
                    "model.shared": kind == "shared",
                }
                given |= {"optimizer.lr": self.dim * rate, **settings}
                found[f"{kind} {alpha:g}"] = runner.train("depth/rotated", given)
        return found

    def _context(self, alpha: float) -> int:
        return max(1, round(alpha * self.dim))

    def _exact(self) -> dict[str, np.ndarray]:
        limits = [marchenko_pastur(rational(a), 2 * self.layers[-1] + 1) for a in self.alphas]
        at_dim = [wishart(self.dim, self._context(a), 2 * DEPTH + 1) for a in self.trained]
        return {
            "alpha_A": np.array(self.alphas),
            "shared_LA": np.array([[_shared(m, L) for m in limits] for L in self.layers]),
            "separate_LA": np.array([[_free(m, L) for m in limits] for L in self.layers]),
            "shared_at_dim": np.array([_shared(m, DEPTH) for m in at_dim]),
            "separate_at_dim": np.array([_free(m, DEPTH) for m in at_dim]),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (limit, trained) = records["exact"].weights, panels.values()
        alpha_A = arrays["alpha_A"]
        for i, L in enumerate(self.layers):
            limit.plot(alpha_A, arrays["separate_LA"][i], color=COLORS[i], label=f"L = {L}")
            limit.plot(alpha_A, arrays["shared_LA"][i], "--", color=COLORS[i])
        limit.plot([], [], "--", color=GREY, label="shared")
        limit.plot(alpha_A, (1 + alpha_A) ** -2.0, ":", color=RED, label="L = 1, printed")
        for kind, color, style in (("shared", ORANGE, "--"), ("separate", BLUE, "-")):
            trained.plot(self.trained, arrays[f"{kind}_at_dim"], style, color=color, label=f"{kind}, least")
            trained.plot(
                self.trained, self._ends(records, kind)[0], "o", color=color, label=f"{kind}, trained"
            )
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
        tied_LA, least_A = arrays["shared_LA"], arrays["shared_at_dim"]
        ratio_A = tied_LA[0] * (1 + arrays["alpha_A"]) ** 2 if self.layers[0] == 1 else np.ones(0)
        excess_LA = (tied_LA / arrays["separate_LA"] - 1)[np.array(self.layers) > 1]
        ends = {kind: self._ends(records, kind) / least_A for kind in ("shared", "separate")}
        return [
            Claim.of(
                "one layer has the loss (1 + alpha)^-2",
                {"ratios of the least risk to it": ratio_A.tolist()},
                exact(ratio_A).at_most(1.0, "least risk not above it at every alpha"),
                expected="fails",
                trained=False,
            ),
            own(
                "shared layers have a higher risk than separate ones, at every alpha and L above 1",
                {"excess at the largest alpha": excess_LA[:, -1].tolist()},
                exact(excess_LA).above(0.0, "excess over separate layers above 0"),
            ),
            *(
                Claim.of(
                    f"trained {kind} layers end {where} the best shared ones",
                    {"ratio": ends[kind][0].tolist(), "standard error": ends[kind][1].tolist()},
                    sampled(ends[kind][0], 2 * ends[kind][1]).below(bound, f"intervals below {bound:g}"),
                    whose=whose,
                )
                for kind, where, bound, whose in (
                    ("shared", "at", 1.1, "paper"),
                    ("separate", "below", 1.0, "project"),
                )
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


def _shared(moments: Sequence[fmpq], layers: int) -> float:
    return float(least(shared(moments, layers))[1])


def _free(moments: Sequence[fmpq], layers: int) -> float:
    return float(best_polynomial(moments, layers)[1])
