"""Exact risks at d = 2 by the number of loops, in training and beyond, which Figures 1 and 4 draw.

N context lengths, L loops in training, M loops at test time.
"""

from collections.abc import Sequence
from dataclasses import InitVar, asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from flint import arb, fmpq
from scipy.optimize import minimize_scalar

from icl.errors import reals, rising, whole
from icl.figures.claims import Claim
from icl.figures.figure import Figure, Layout, Records
from icl.figures.runner import Runner
from icl.progress import track
from icl.tasks import LinearRegression
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import MAX_LAYERS, risk
from icl.theory.looped.search import best_rotation

ROUNDING = 1e-9
project_claim = partial(Claim.of, trained=False, whose="project")


def gains(cells: list[EqualSteps]) -> list[float]:
    """Return the share of the best multiple's risk that the best matrix found saves, of each cell."""
    rows = track(cells, "cells", len(cells))
    return [1 - float(best_rotation(one).risk) / one.least_risk for one in rows]


@dataclass(eq=False)
class Loops(Figure):
    """Record: `exact`, the risks of what is best for L loops, and of the same at other numbers of loops."""

    contexts: Sequence[int]
    loops: Sequence[int]
    at_test: int
    eigenvalues: Sequence[float]
    covariance: InitVar[Any] = None

    def __post_init__(self, covariance: Any) -> None:
        self.contexts = rising("figure.contexts", self.contexts, 1, 10**9)
        self.loops = rising("figure.loops", self.loops, 1, MAX_LAYERS)
        self.at_test = whole("figure.at_test", self.at_test, self.loops[-1], MAX_LAYERS)
        if covariance is not None:
            given = LinearRegression(2, covariance=covariance, prefix="figure")
            self.eigenvalues = np.linalg.eigvalsh(np.array(given.covariance)).tolist()
        self.eigenvalues = reals("figure.eigenvalues", self.eigenvalues, 2, 0, open_low=True)

    def runs(self, runner: Runner) -> Records:
        return {"exact": runner.store("looped/loops", asdict(self), self._exact)}

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"n = {n}" for n in records["exact"].weights["contexts_N"]], (2.9, 2.5))

    def _exact(self) -> dict[str, np.ndarray]:
        at_test = range(1, self.at_test + 1)
        rows = [[self._cell(EqualSteps(2, n, L), at_test) for L in self.loops] for n in self.contexts]
        return {
            "contexts_N": np.array(self.contexts),
            "loops_L": np.array(self.loops),
            "loops_M": np.array(at_test),
            **{name: np.array([[cell[name] for cell in row] for row in rows]) for name in rows[0][0]},
        }

    def _cell(self, steps: EqualSteps, at_test: Sequence[int]) -> dict[str, object]:
        best, n = best_rotation(steps), steps.context
        scalar_a = fmpq(*steps.best.as_integer_ratio())
        return {
            "scalar_NL": steps.least_risk,
            "best_NL": float(best.risk),
            "separate_NL": float(arb(steps.separate_risk)),
            "plain_NL": self._plain(steps),
            "scalar_again_NLM": [float(arb(risk(M, n, scalar_a))) for M in at_test],
            "best_again_NLM": [float(arb(risk(M, n, best.a, best.b))) for M in at_test],
        }

    def _plain(self, steps: EqualSteps) -> float:
        """Return the least risk of A = a I, which is a Sigma in whitened coordinates."""
        first, second = (fmpq(*x.as_integer_ratio()) for x in self.eigenvalues)

        def log_risk(step: float) -> float:
            a = fmpq(*float(step).as_integer_ratio()) / 2
            value = risk(steps.layers, steps.context, a * (first + second), 0, a * (first - second))
            return float(arb(value).log())

        top = 4 * steps.best / min(self.eigenvalues)
        found = minimize_scalar(log_risk, bounds=(0, top), method="bounded", options={"xatol": 1e-10})
        return float(np.exp(found.fun))
