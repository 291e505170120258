"""giannou, Theorems 5.1 and 5.2: how many steps k of inversion a Newton step needs, and the printed bound.

The Hessian H has eigenvalues in [mu, 1 + mu], and the inverse is needed to delta = eps^2 mu^2 / (1 + mu)^3.
From the authors' start the error after k steps is r^{2^k} / mu at the smallest eigenvalue, r = kappa^2 /
(1 + kappa^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from icl.algorithms.newton import newton_iteration, transpose_start
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError, reals

ALLOWED = 2.0  # steps beyond the printed bound
REMARKS = [
    "With logarithms to the base 2, as in section 3.2.1, the printed k suffices up to an additive constant: "
    "less than 2 steps more are needed for every mu <= 1 and eps <= 1. With natural logarithms it does not, "
    "by any constant: 2 ln kappa is below the 2 log2 kappa of the first phase by .61 log2 kappa.",
    "Remark C.1 calls 2 log kappa(H) an additive constant of k. It is one in eps, not in mu: kappa(H) can be "
    "(1 + mu) / mu.",
]


@dataclass(eq=False)
class InversionSteps:
    """Settings: values of mu, each at most 1, and of eps, at most 1."""

    mus: Sequence[float] = (1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4)
    accuracies: Sequence[float] = (1.0, 0.1, 1e-2, 1e-4, 1e-6)

    reference = "Theorems 5.1 and 5.2, Remark C.1"
    claim = (
        "k = 2 log2 kappa + log2 log2 ((1+mu)^3 / (eps^2 mu^2)) + 2 steps of inversion suffice for an error "
        "of eps^2 mu^2 / (1+mu)^3: the printed bound with logarithms to the base 2 and a constant."
    )

    def __post_init__(self) -> None:
        validate(self)
        for key in ("mus", "accuracies"):
            values = reals(f"check.{key}", getattr(self, key), None, 0, open_low=True)
            if not all(1e-6 <= value <= 1 for value in values):
                raise InputError(f"check.{key}={values}: must be from 1e-06 to 1")
            setattr(self, key, values)

    def measure(self) -> Finding:
        pairs = [(mu, eps) for mu in self.mus for eps in self.accuracies]
        needed = [steps_needed(mu, eps) for mu, eps in pairs]
        excess = [k - printed_steps(*pair, 2.0) for k, pair in zip(needed, pairs, strict=True)]
        natural = [k - printed_steps(*pair, math.e) for k, pair in zip(needed, pairs, strict=True)]
        off, compared = 0, 0
        for (mu, eps), k in zip(pairs, needed, strict=True):
            counted = steps_counted(mu, eps)
            if counted is not None:
                off, compared = max(off, abs(counted - k)), compared + 1
        return finding(
            [
                exact(excess=max(excess))
                .means("largest number of steps needed beyond the printed bound, its logs to the base 2")
                .compared_by("count_off", "counting the iteration's own steps")
                .at_most(ALLOWED, "1 + log2 1.5 + log2 (1.5 ln 2) = 1.64, and rounding up"),
                tried(count_off=float(off))
                .means("largest difference of the steps needed from those that the iteration takes")
                .at_most(0.5, "the residual's power 2^k", otherwise="undecided"),
                exact(needed=needed, natural_excess=max(natural), compared=compared)
                .means(
                    needed="numbers of steps needed, by mu and then by eps",
                    natural_excess="largest number of steps needed beyond the bound with natural logs",
                    compared="number of pairs at which the iteration itself was run",
                )
                .compared_by("count_off", "counting the iteration's own steps"),
            ],
            Control(
                "the same excess over the bound without its 2 log2 kappa",
                max(excess) + 2 * math.log2(_kappa(min(self.mus))),
                max(
                    k - printed_steps(*pair, 2.0) + 2 * math.log2(_kappa(pair[0]))
                    for k, pair in zip(needed, pairs, strict=True)
                )
                > ALLOWED,
            ),
            remarks=REMARKS,
        )


def steps_needed(mu: float, eps: float) -> int:
    """Return the least k with r^{2^k} / mu <= delta, in logarithms: delta may be far below rounding."""
    shrink = math.log1p(1 / _kappa(mu) ** 2)
    return max(0, math.ceil(math.log2(math.log(1 / (mu * _delta(mu, eps))) / shrink) - 1e-12))


def printed_steps(mu: float, eps: float, base: float) -> float:
    """2 log kappa + log log ((1+mu)^3 / (eps^2 mu^2)) in logarithms to this base."""
    inner = math.log(1 / _delta(mu, eps)) / math.log(base)
    return (2 * math.log(_kappa(mu)) + math.log(inner)) / math.log(base)


def steps_counted(mu: float, eps: float) -> int | None:
    """Count the iteration's steps on a Hessian with both extreme eigenvalues; None where rounding, of about
    kappa^2 eps_64 / mu, hides the accuracy."""
    delta, kappa = _delta(mu, eps), _kappa(mu)
    if delta < 1e-12 * kappa**2 / mu:
        return None
    H_DD = torch.diag(torch.tensor([1 + mu, (mu * (1 + mu)) ** 0.5, mu], dtype=torch.float64))
    X_DD, inverse_DD = transpose_start(H_DD), torch.linalg.inv(H_DD)
    for step in range(200):
        if float(torch.linalg.matrix_norm(X_DD - inverse_DD, 2)) <= delta:
            return step
        X_DD = newton_iteration(H_DD, X_DD, 2, 1)[-1]
    return None


def _kappa(mu: float) -> float:
    return (1 + mu) / mu


def _delta(mu: float, eps: float) -> float:
    return eps**2 * mu**2 / (1 + mu) ** 3
