"""looped: does training find the rotation? Gradient descent on the exact risk at d = 2, from small random A.

From a multiple of I exact descent never leaves the multiples: the risk is the same at Q A Q^T for every
orthogonal Q, so its gradient at a I is a multiple of I.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from flint import fmpq

from icl.checks.looped.settings import LOWER_FROM, Plane
from icl.checks.statement import UNREFUTED, Measured, setting
from icl.theory.looped.descent import descend, plane_risk
from icl.theory.looped.plane import at, coefficients
from icl.theory.rationals import rational

NEAR = fmpq(1, 100)  # a start that ends so near, relatively, has found it, and at least half must


@dataclass
class FlowFindsIt(Plane):
    starts: int = setting(4, 1, 4, most=1000, beyond="training takes hours")
    steps_taken: int = setting(1000, 1, 1000, most=100_000, beyond="training takes hours")
    init_std: float = setting(0.01, 1e-12)
    seed: int = setting(0, 0)

    where, title = "statement 5", "Training finds the rotation"
    claim = (
        "Gradient descent from small random weights ends at a matrix that is better than every scalar one."
    )
    formula = r"A_{t + 1} = A_t - \eta_t \nabla \log f(A_t) \to \arg\min f,\quad A_0 \text{ small and random}"
    tries = 0  # a thousand steps of each start

    def expected(self) -> str:
        """At two loops the gain is 1 % from n = 29 on; a large start is far from small weights."""
        first = 29 if self.layers == 2 else LOWER_FROM.get((2, self.layers), 10**18) + 1
        near = 1e-3 <= self.init_std <= 0.3 and self.steps_taken >= 1000
        return "holds" if near and first <= self.context <= 1000 else UNREFUTED

    def measure(self, m: Measured) -> None:
        found, (_, scalar) = self.found(), self.steps.optimum
        ends = [self._end(k) for k in range(self.starts)]
        excesses = sorted(risk / found.risk - 1 for risk in ends)
        middle = (excesses[(self.starts - 1) // 2] + excesses[self.starts // 2]) / 2
        about = "the median start ends within 1 % of the least risk found"
        m.true("found", True if middle < NEAR else None, about)
        about = "risk at the end over the least found, less 1, the median over starts"
        m.number("median_excess", middle, about, searched=True)
        m.number("best_risk", found.risk, "risk of the best matrix found", searched=True)
        m.number("scalar_risk", scalar, "risk of the best scalar, where descent from a multiple of I ends")
        about = "excess of the best scalar, less 1 %: it must not be near the best matrix"
        m.control(about, scalar / found.risk - 1 - NEAR, wants="positive")

    def _end(self, k: int) -> fmpq:
        """Return the exact risk of the matrix, in rationals, at which a start ends."""
        rng = Random(f"{self.seed} {k}")
        start_DD = self.init_std * np.array([[rng.gauss(), rng.gauss()], [rng.gauss(), rng.gauss()]])
        path_TDD, _ = descend(plane_risk(self.context, self.layers), start_DD, self.steps_taken)
        return self._exact(path_TDD[-1].tolist())

    def _exact(self, A: Any) -> fmpq:
        """Turn A to a I + b J + h H: f is even in b, and in h, which enters by its square."""
        (p, q), (r, s) = ([rational(x) for x in row] for row in A)
        a, b, square = (p + s) / 2, (r - q) / 2, ((p - s) ** 2 + (q + r) ** 2) / 4
        return at(coefficients(self.layers, self.context), a, b, square)
