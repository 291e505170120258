"""Ahn et al. 2023, section 3, the first property of eq. (6): its limit for long contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from flint import fmpq, fmpq_mat

from icl.checks.prompts import Covariance
from icl.checks.statement import Measured, setting
from icl.errors import rising
from icl.theory.rationals import identity, is_diagonal, trace
from icl.theory.roots import real_roots

LONGEST = 10**12


def draw_contexts(rng: Random, share: float, drawn: Mapping[str, Any]) -> list[int]:
    return sorted({round(10 ** rng.uniform(0, 1 + 11 * share)) for _ in range(4)} | {1, LONGEST})


@dataclass
class LargeContext(Covariance):
    contexts: Sequence[int] = setting((10, 100, 1000, 10_000, 100_000), draw=draw_contexts)

    paper, where = "ahn", "Section 3, the first property of eq. (6)"
    title = "Section 3: the preconditioner at large n"
    law = "x ~ N(0, Sigma), w ~ N(0, I), n examples, y = w.x"
    claim = "As n grows, the preconditioner of the best single layer, eq. (6), converges to Sigma^-1."
    quote = (
        r'"When the number of samples $n$ is large, the first $d \times d$ submatrix of $Q_0$ approximates '
        r'$\Sigma^{-1}$, the inverse of the data covariance matrix" (Section 3)'
    )
    formula = (
        r"\left(\tfrac{n+1}{n}\Sigma + \tfrac{\operatorname{tr}\Sigma}{n} I\right)^{-1} \longrightarrow "
        r"\Sigma^{-1}\quad (n \to \infty)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.contexts = rising("check.contexts", self.contexts, 1, LONGEST, 2)

    def measure(self, m: Measured) -> None:
        sigma, spread = self.sigma, trace(self.sigma) * identity(self.dim)
        rate = 1 + trace(sigma) / spectrum(sigma)[0]

        def distance(n: int, term: fmpq_mat) -> Any:
            A = (fmpq(n + 1, n) * sigma + term).inv()
            return spectrum(identity(self.dim) - A * sigma)[-1]

        distances = [distance(n, spread / fmpq(n)) for n in self.contexts]
        long = max(self.contexts[-1], math.ceil(4 * float(rate)))
        undivided = distance(long, spread)
        name = "largest_context_times_distance"
        about = "n |Sigma^1/2 A Sigma^1/2 - I|_2 at the longest context, below 1 + tr(Sigma) / lambda_min"
        m.below(name, self.contexts[-1] * distances[-1], rate, about)
        about = f"the same at n = {long}, the trace not divided by n, minus that limit"
        m.control(about, long * undivided - rate, of=name)
        off = [share * (n + rate) / rate - 1 for n, share in zip(self.contexts, distances, strict=True)]
        m.zero("rate_error", off, "distance over r / (n + r) minus 1, r = 1 + tr(Sigma) / lambda_min, by n")
        m.control("the trace not divided by n", undivided * (long + rate) / rate - 1, of="rate_error")
        m.note("the block of Q_0 converges to -Sigma^-1: Q_0 is minus the preconditioner")
        m.note("Sigma^-1 is close to n times the inverse of the Gram matrix of the x_i, not to that matrix")


def spectrum(x: fmpq_mat) -> list[Any]:
    """Return the distinct eigenvalues, rising, of a matrix that has real ones: in balls, if not diagonal."""
    if is_diagonal(x):
        return sorted({x[i, i] for i in range(x.nrows())})
    return list(real_roots(x.charpoly()))
