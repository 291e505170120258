"""Figures 1 and 4 of looped: exact risks at d = 2 by the number of loops, in training and beyond.

N context lengths, L loops in training, M loops at test time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from icl.checks.looped.support.rotations import Rotation, best_rotation
from icl.errors import InputError, reals, whole
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import MAX_LAYERS, PlaneRisk

KEY = "figure.experiment"


class Loops:
    """records: `exact`, the risks of what is best for L loops, and of the same at other numbers of loops."""

    def __init__(
        self, contexts: Sequence[int], loops: Sequence[int], at_test: int, eigenvalues: Sequence[float]
    ) -> None:
        self.contexts = whole_list("contexts", contexts, 1, 10**9)
        self.loops = whole_list("loops", loops, 1, MAX_LAYERS)
        self.at_test = whole(f"{KEY}.at_test", at_test, self.loops[-1], MAX_LAYERS)
        self.eigenvalues = reals(f"{KEY}.eigenvalues", eigenvalues, 2, 0, open_low=True)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        science = {
            "contexts": self.contexts,
            "loops": self.loops,
            "at_test": self.at_test,
            "eigenvalues": list(self.eigenvalues),
        }
        return {"exact": runner.store("looped/loops", science, self._exact)}

    def _exact(self) -> dict[str, np.ndarray]:
        cells = [
            [(EqualSteps(2, n, L), best_rotation(EqualSteps(2, n, L), 0)) for L in self.loops]
            for n in self.contexts
        ]
        at_test = range(1, self.at_test + 1)
        rules = {n: {M: PlaneRisk(n, M).rule for M in at_test} for n in self.contexts}
        identity_DD = np.eye(2)

        def again(A_of: object) -> np.ndarray:
            return np.array(
                [[[rules[s.context][M].value(A_of(s, r)) for M in at_test] for s, r in row] for row in cells]  # type: ignore[operator]
            )

        return {
            "contexts_N": np.array(self.contexts),
            "loops_L": np.array(self.loops),
            "loops_M": np.array(at_test),
            "scalar_NL": np.array([[s.least_risk for s, _ in row] for row in cells]),
            "best_NL": np.array([[r.risk for _, r in row] for row in cells]),
            "best_rational_NL": np.array([[rational_risk(s, r) for s, r in row] for row in cells]),
            "separate_NL": np.array([[float(s.separate_risk) for s, _ in row] for row in cells]),
            "plain_NL": np.array([[self._plain(s) for s, _ in row] for row in cells]),
            "a_NL": np.array([[r.a for _, r in row] for row in cells]),
            "b_NL": np.array([[r.b[0] for _, r in row] for row in cells]),
            "scalar_again_NLM": again(lambda s, r: s.best * identity_DD),
            "best_again_NLM": again(lambda s, r: r.A_DD),
        }

    def _plain(self, steps: EqualSteps) -> float:
        """Return the least risk of L equal steps of plain gradient descent: A is a multiple of Sigma where
        Sigma is whitened."""
        rule, Sigma_DD = PlaneRisk(steps.context, steps.layers).rule, np.diag(self.eigenvalues)
        top = 4 * steps.best / min(self.eigenvalues)
        found = minimize_scalar(
            lambda a: np.log(rule.value(a * Sigma_DD)), bounds=(0, top), options={"xatol": 1e-10}
        )
        return float(np.exp(found.fun))


def rational_risk(steps: EqualSteps, found: Rotation) -> float:
    """Return the exact risk in rationals at weights rounded to nine decimals."""
    a, b = (Fraction(round(x * 10**9), 10**9) for x in (found.a, float(found.b[0])))
    return float(PlaneRisk(steps.context, steps.layers).exact(a, b))


def whole_list(name: str, given: Sequence[int], low: int, high: int) -> list[int]:
    """Return a list of whole numbers in rising order."""
    if not isinstance(given, list | tuple) or not given:
        raise InputError(f"{KEY}.{name}={given}: must be a list of whole numbers")
    numbers = [whole(f"{KEY}.{name}", number, low, high) for number in given]
    if sorted(set(numbers)) != numbers:
        raise InputError(f"{KEY}.{name}={numbers}: must be in rising order")
    return numbers
