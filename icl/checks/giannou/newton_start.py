"""giannou, section 3.2.1: from which alpha the iteration (3.3), started at X_0 = alpha A^T, converges, and
how many steps it takes near the edges.

On A's singular values s the residual I - X_t A is (1 - alpha s^2)^{2^t}. D covariates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.algorithms.newton import newton_iteration
from icl.checks.giannou.support.problems import MAX_DIM, TOO_LONG, draw_designs, validate_condition
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import real
from icl.random import generator

MOST_STEPS = 60
SHARES = (-0.1, 1e-3, 0.3, 0.5, 0.9, 0.999, 1.001, 1.1)  # of 2 / lambda_max
EDGES = (1e-1, 1e-2, 1e-4, 1e-6)  # distances of alpha from either edge, in shares
REMARKS = [
    "The interval of alpha is right, and open at both ends: at alpha = 2 / lambda_max(A^T A) the iterate is "
    "0 on the top eigenvector after one step and stays there. The number of steps is O(log kappa + log log "
    "(1/eps)) for a fixed alpha lambda_max only: it grows by one with each halving of alpha's distance "
    "from either edge (steps_near_edges), without a bound.",
]


@dataclass(eq=False)
class NewtonStart:
    """Settings: dimension, condition of A, accuracy, seed."""

    reference = "Section 3.2.1, after eq. (3.3)"
    claim = (
        "From X_0 = alpha A^T the iteration (3.3) converges to the inverse for every alpha in (0, 2 / "
        "lambda_max(A^T A)) and for no other."
    )

    dim: int = integer(5, 1, MAX_DIM, TOO_LONG)
    condition: float = 10.0
    accuracy: float = 1e-6
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        self.condition = validate_condition(self.condition, 1e3)
        self.accuracy = real("check.accuracy", self.accuracy, 1e-8)

    def measure(self) -> Finding:
        A_DD = draw_designs(generator(self.seed, "check"), self.dim, self.dim, self.condition, 1)[0]
        converged = {share: steps_from(A_DD, share, self.accuracy) is not None for share in SHARES}
        # At the edge itself rounding would move it: the largest singular value is exactly 1 here.
        exact_DD = torch.diag(torch.cat([torch.ones(1), torch.full((self.dim - 1,), 0.5)]).double())
        at_edge = sum(steps_from(exact_DD, share, self.accuracy) is not None for share in (0.0, 1.0))
        wrong = _mismatches(converged, 1.0) + at_edge
        steps, off = self._near_edges()
        control = min(_mismatches(converged, 0.5), _mismatches(converged, 2.0))
        return finding(
            [
                tried(mismatches=wrong)
                .means("number of alpha at which convergence and the claim differ")
                .at_most(0.5, "the claim, counted"),
                exact(steps_off_formula=off)
                .means("largest difference of the number of steps from its formula")
                .compared_by("steps_off_formula", "steps of the iteration, and formula")
                .at_most(0.5, "the residual's power 2^t", otherwise="undecided"),
                exact(steps_near_edges=steps)
                .means("number of steps to the accuracy, by the distance of alpha from an edge")
                .compared_by("steps_off_formula", "the formula for the steps"),
            ],
            Control(
                "the same number for intervals that end at 1 / lambda_max and at 4 / lambda_max, the lesser",
                control,
                control > 0.5,
            ),
            notes=[f"alpha is tried at the shares {list(SHARES)}, 0 and 1 of 2 / lambda_max."],
            remarks=REMARKS,
        )

    def _near_edges(self) -> tuple[dict[str, list[float]], float]:
        """Return steps by distance from both edges, and how far they are from ceil(log2(log eps / log r))."""
        kappa = max(self.condition, 1 + 1e-9)
        A_DD = torch.diag(torch.tensor([1.0, 1 / kappa], dtype=torch.float64))
        found: dict[str, list[float]] = {"distances": list(EDGES), "from 0": [], "from 2": []}
        off = []
        for distance in EDGES:
            for edge, share in (("from 0", distance), ("from 2", 1 - distance)):
                taken = steps_from(A_DD, share, self.accuracy)
                residual = max(abs(1 - 2 * share), abs(1 - 2 * share / kappa**2))
                expected = math.ceil(math.log2(math.log(self.accuracy) / math.log(residual)) - 1e-9)
                found[edge].append(math.inf if taken is None else float(taken))
                off.append(abs(found[edge][-1] - max(expected, 0)))
        return found, max(off)


def steps_from(A_DD: Tensor, share: float, accuracy: float) -> int | None:
    """Count steps of (3.3) from alpha = share 2 / lambda_max until |I - X A| <= accuracy; None for never."""
    alpha = share * 2 / float(torch.linalg.matrix_norm(A_DD, 2)) ** 2
    X_DD, identity_DD = alpha * A_DD.mT, torch.eye(len(A_DD), dtype=torch.float64)
    for step in range(MOST_STEPS):
        residual = float(torch.linalg.matrix_norm(identity_DD - X_DD @ A_DD, 2))
        if residual <= accuracy:
            return step
        if not residual < 1e3:
            return None
        X_DD = newton_iteration(A_DD, X_DD, 2, 1)[-1]
    return None


def _mismatches(converged: dict[float, bool], end: float) -> int:
    return sum(found != (0 < share < end) for share, found in converged.items())
