"""ahn, section 3, the first property of eq. (6): for large n the preconditioner of the best single layer
approaches Sigma^{-1}.

In Sigma's eigenbasis (6) has the entries 1 / (lambda_i (1 + r_i / N)), r_i = 1 + tr(Sigma) / lambda_i, so
||Sigma^{1/2} A Sigma^{1/2} - I||_2 = r / (N + r) with r the largest r_i: below r / N at every N, and of that
size for N beyond r. The distance is taken from Sigma^{-1} - A = A (Sigma + tr(Sigma) I) Sigma^{-1} / N, of
positive terms: I - Sigma^{1/2} A Sigma^{1/2} itself loses the digits of a small one, and is compared with it
up to rounding. That (6) is the best matrix is measured again at every N, by words in S.

D covariates, N = `contexts` tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support import preconditioner
from icl.checks.ahn.support.settings import Eigenvalues, Matrix
from icl.checks.differences import DIFFERENCES
from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer, law_of, rising_contexts, validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.theory.closed_forms import theorem1_preconditioner

MAX_CONTEXT, MAX_CONDITION = 10**9, 1e13
RATE = (
    "the exact rate 1/n: the distance is r / (n + r), r = 1 + tr(Sigma) / (least eigenvalue), without "
    "cancellation"
)


@dataclass(eq=False)
class LargeContext:
    """Settings: dimension, context lengths in rising order, eigenvalues or covariance Sigma of x, seed."""

    dim: int = integer(5, 1, 64, "the risk's words take dim^3 operations each")
    contexts: Sequence[int] = (10, 100, 1000, 10_000, 100_000)
    eigenvalues: Eigenvalues = None
    covariance: Matrix = None
    seed: int = integer(0, 0)

    reference = "Section 3, the first property of eq. (6)"
    claim = "As n grows, the preconditioner of the best single layer, eq. (6), converges to Sigma^-1."

    def __post_init__(self) -> None:
        validate(self)
        reason = "1 / context falls into the rounding of the gradient"
        self.contexts = rising_contexts(self.contexts, MAX_CONTEXT, reason)
        given = {"eigenvalues": self.eigenvalues, "covariance": self.covariance}
        Sigma = law_of(self.dim, self.contexts[0], self.seed, **given).Sigma_RDD[0]
        self.Sigma = Sigma / Sigma.diagonal().max()  # the distance has no unit
        low, high = torch.linalg.eigvalsh(self.Sigma)[[0, -1]].tolist()
        if low * MAX_CONDITION <= high:
            named = "covariance" if self.eigenvalues is None else "eigenvalues"
            raise InputError(
                f"check.{named}: the largest is above {MAX_CONDITION:g} times the least eigenvalue of Sigma, "
                "so rounding hides Sigma^-1"
            )

    def measure(self) -> Finding:
        eigenvalues_D = torch.linalg.eigvalsh(self.Sigma)
        condition = float(eigenvalues_D[-1] / eigenvalues_D[0])
        rate = 1 + float(eigenvalues_D.sum() / eigenvalues_D[0])
        scaled = [preconditioner.context_times_distance(eigenvalues_D, N) for N in self.contexts]
        distances = [share / N for N, share in zip(self.contexts, scaled, strict=True)]
        difference = max(
            abs(preconditioner.distance_as_difference(self.Sigma, theorem1_preconditioner, N) - distance)
            for N, distance in zip(self.contexts, distances, strict=True)
        )
        gradient = max(preconditioner.relative_gradient(self.Sigma, N) for N in self.contexts)
        rng = np.random.default_rng(0)  # of directions
        by_differences = max(preconditioner.by_differences(self.Sigma, N, rng) for N in self.contexts)
        long = max(self.contexts[-1], math.ceil(4 * rate))  # there a distance of 1/2 is seen
        control = long * preconditioner.distance_as_difference(
            self.Sigma, preconditioner.trace_undivided, long
        )
        return finding(
            [
                exact(largest_context_times_distance=max(scaled))
                .means("largest n |Sigma^1/2 A Sigma^1/2 - I|_2 over the context lengths")
                .compared_by("largest_difference", "the distance as a difference of matrices")
                .at_most(rate, RATE),
                exact(largest_difference=difference)
                .means("largest difference of two computations of that distance")
                .compared_by("largest_difference", "closed form, and difference of matrices")
                .at_most(ROUNDING * condition, preconditioner.DIFFERENCE),
                exact(largest_gradient=gradient)
                .means("largest gradient of the exact risk at eq. (6), as a share of the gradient at A = 0")
                .also_by(DIFFERENCES, largest_gradient=by_differences, size=condition)
                .at_most(ROUNDING * condition, preconditioner.GRADIENT),
                exact(contexts=list(self.contexts)).means("context lengths").by_definition(),
                exact(distance_by_context=distances, context_times_distance=scaled)
                .means(
                    distance_by_context="distance |Sigma^1/2 A Sigma^1/2 - I|_2, by context length",
                    context_times_distance="context length times that distance, by context length",
                )
                .compared_by("largest_difference", "the distance as a difference of matrices"),
            ],
            Control(
                f"n times the distance at n = {long}, with the trace in eq. (6) not divided by n",
                control,
                control > rate,
            ),
            remarks=[
                "The block of Q_0 converges to -Sigma^-1 and not to Sigma^-1, because Q_0 is minus the "
                "preconditioner, as in eq. (6). And Sigma^-1 is close to n times the inverse of the Gram "
                "matrix of the x_i, not to the Gram matrix.",
                f"The limit is approached for n well above 1 + tr(Sigma)/lambda_min = {rate:.4g}.",
            ],
        )
