"""Figure 2 of looped: the gain of the best shared matrix, by context length, loops and dimension.

In whitened coordinates, where every antisymmetric matrix is a direct sum of blocks b_j J up to a rotation. At
d = 2 the risk is exact; beyond, a search on weighted draws of G is followed by draws on which nothing was
searched. C dimensions, N context lengths, L loops; J draws, D covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from matplotlib.colors import Normalize
from scipy.optimize import minimize

from icl.checks.statement import QUANTILE
from icl.errors import rising, whole
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.looped.loops import added, best_rotation
from icl.figures.runner import Runner
from icl.figures.style import ON_DARK, ON_LIGHT, entry_text, figure_of, outline
from icl.progress import track
from icl.random import generator
from icl.tasks.tilted import draw_tilted, inflations_for
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import MAX_LAYERS
from icl.theory.looped.weighted import Array, WeightedRisk

MAX_DIM = 20
SEARCH_DRAWS = 2000
TURN = 0.1  # b over a, where the search begins
NO_TURN = 0.02  # of b over a: what is nearer to 0 the draws of a search cannot tell from it


@dataclass(eq=False)
class Fig2(Figure):
    """Record: `gains` of every cell with half of its interval, and the sign of the curvature at the best
    scalar. `draws` are those of a comparison, times d^2: numbers of an array."""

    dims: Sequence[int]
    contexts: Sequence[int]
    loops: Sequence[int]
    draws: int
    seed: int

    def __post_init__(self) -> None:
        self.dims = rising("figure.dims", self.dims, 2, MAX_DIM)
        self.contexts = rising("figure.contexts", self.contexts, 1, 10**9)
        self.loops = rising("figure.loops", self.loops, 1, MAX_LAYERS)
        self.draws = whole("figure.draws", self.draws, 10_000)
        self.seed = whole("figure.seed", self.seed, 0)

    def runs(self, runner: Runner) -> Records:
        return {"gains": runner.store("looped/phase_diagram", asdict(self), self._gains)}

    def _gains(self) -> dict[str, Array]:
        named = {"dims_C": self.dims, "contexts_N": self.contexts, "loops_L": self.loops}
        cells = list(product(*named.values()))
        rows = [self._cell(EqualSteps(*cell)) for cell in track(cells, "cells", len(cells))]
        columns = np.array(rows).T.reshape(-1, *map(len, named.values()))
        names = ("gain_CNL", "half_width_CNL", "sign_CNL")
        return {name: np.array(values) for name, values in named.items()} | dict(
            zip(names, columns, strict=True)
        )

    def _cell(self, steps: EqualSteps) -> tuple[float, float, int]:
        if steps.dim == 2:
            best = best_rotation(steps)
            gain, half_width = 1 - float(best.risk) / steps.least_risk if best.planes else 0.0, 0.0
        else:
            gain, half_width = self._searched(steps)
        return gain, half_width, steps.curvature_sign()

    def _searched(self, steps: EqualSteps) -> tuple[float, float]:
        theta = descend(self._drawn(steps, SEARCH_DRAWS, 0), steps.best)
        if np.abs(theta[1:]).max() < NO_TURN * theta[0]:
            return 0.0, 0.0
        return held_out_gain(
            matrix(theta, steps.dim), steps, self._drawn(steps, self.draws // steps.dim**2, 1)
        )

    def _drawn(self, steps: EqualSteps, count: int, step: int) -> WeightedRisk:
        """Return draws of G that see the tail of a risk of degree 2 L."""
        d, n, L = steps.dim, steps.context, steps.layers
        rng = generator(self.seed, "search", step)
        G_JDD, weight_J = draw_tilted(rng, n, d, count, inflations_for(2 * L, n, d))
        return WeightedRisk(G_JDD, weight_J / count, L)

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"d = {d}" for d in records["gains"].weights["dims_C"]], (2.2, 2.5))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["gains"].weights
        gain_CNL, loops_L, contexts_N = arrays["gain_CNL"], arrays["loops_L"], arrays["contexts_N"]
        norm = Normalize(0, max(gain_CNL.max(), 1e-9))
        for (title, axes), gain_NL, sign_NL in zip(panels.items(), gain_CNL, arrays["sign_CNL"], strict=True):
            image = axes.imshow(gain_NL, norm=norm, cmap="Blues")
            for (i, j), gain in np.ndenumerate(gain_NL):
                color = ON_DARK if norm(gain) > 0.6 else ON_LIGHT
                axes.text(j, i, entry_text(gain), ha="center", va="center", color=color, size="x-small")
            outline(axes, np.argwhere(sign_NL < 0))
            axes.set_xticks(range(len(loops_L)), loops_L)
            axes.set_yticks(range(len(contexts_N)), contexts_N)
            axes.set(title=title, xlabel="loops L")
        next(iter(panels.values())).set_ylabel("context length n")
        figure_of(axes).colorbar(image, ax=[*panels.values()], pad=0.02, shrink=0.8, label="gain")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["gains"].weights
        gain, half, sign = (arrays[f"{name}_CNL"] for name in ("gain", "half_width", "sign"))
        plane = arrays["dims_C"] == 2
        saddle = gain[plane][((sign < 0) & (arrays["loops_L"] > 1))[plane]]
        wider, width = gain[~plane][:, -1, -1], half[~plane][:, -1, -1]
        outside = gain[(sign > 0) & (gain > half)]
        claims = [
            added(
                "where the best multiple is a saddle, a matrix with an antisymmetric part has a lower risk: "
                "d = 2",
                {"cells": len(saddle), "least gain": float(saddle.min(initial=1))},
                exact(saddle).above(0.0, "gain above 0 in every such cell"),
            ),
            added(
                "in more dimensions, too, one matrix gains at the longest context and the most loops",
                {"gains": wider.tolist(), "half widths": width.tolist()},
                # Small gains are below what draws can tell, so one cell of each dimension decides.
                sampled(wider, width).above(0.0, "99.9 % intervals above 0 in every dimension"),
            ),
            added(
                "a rotation far from the multiples of Sigma^-1 may gain where the best of these is a local "
                "minimum",
                {"cells": len(outside), "largest gain there": float(outside.max(initial=0))},
                exact(len(outside)).above(0.0, "at least one such cell"),
            ),
        ]
        return claims if len(wider) else [claims[0], claims[2]]


def held_out_gain(A_DD: Array, steps: EqualSteps, held_out: WeightedRisk) -> tuple[float, float]:
    """Return the mean of 1 - f(A) / f(a I) over the draws held out, and half of its interval.

    The same draws' f(c I) at a few c, and their weights, have means that are known exactly: control variates,
    whose coefficients in one half of the draws are fitted to the other.
    """
    at = np.array([1.0, np.trace(A_DD) / len(A_DD) / steps.best, 1.1, 1.25]) * steps.best
    means_C = np.array([steps.risk(c) for c in at] + [1.0])
    count, identity_DD = len(held_out.weight_J), np.eye(len(A_DD))
    known = [held_out.terms(c * identity_DD) for c in at]
    known_JC = np.stack([*known, held_out.weight_J], 1) * count / means_C - 1
    lower_J = (known[0] - held_out.terms(A_DD)) * count / steps.least_risk
    centred_J, rest_J = lower_J - lower_J.mean(), np.empty(count)
    halves = slice(None, count // 2), slice(count // 2, None)
    for one, other in (halves, halves[::-1]):
        slopes_C = np.linalg.lstsq(known_JC[other], centred_J[other], rcond=None)[0]
        rest_J[one] = lower_J[one] - known_JC[one] @ slopes_C
    return float(rest_J.mean()), float(QUANTILE * rest_J.std() / count**0.5)


def matrix(theta: Array, dim: int) -> Array:
    """Return a I + K, K the direct sum of blocks [[0, -b_j], [b_j, 0]]."""
    A_DD, rows = theta[0] * np.eye(dim), 2 * np.arange(dim // 2)
    A_DD[rows, rows + 1], A_DD[rows + 1, rows] = -theta[1:], theta[1:]
    return A_DD


def descend(risk: WeightedRisk, scalar: float) -> Array:
    """Minimise log f over (a, b_1, ...)."""
    dim = risk.G_JDD.shape[1]
    rows = 2 * np.arange(dim // 2)

    def log_risk(theta: Array) -> tuple[float, Array]:
        value, slope_DD = risk.with_gradient(matrix(theta, dim))
        along_b = slope_DD[rows + 1, rows] - slope_DD[rows, rows + 1]
        return float(np.log(value)), np.array([np.trace(slope_DD), *along_b]) / value

    start = np.array([scalar, *np.full(dim // 2, TURN * scalar)])
    options = {"maxiter": 200, "ftol": 1e-9, "gtol": 1e-10}
    best: Array = minimize(log_risk, start, jac=True, method="L-BFGS-B", options=options).x
    best[1:] = np.sort(np.abs(best[1:]))[::-1]  # a rotation of the coordinates makes every b_j positive
    return best
