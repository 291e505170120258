"""The risk of one layer on AR(s) tokens under a law: exact in settings (a), (b), averaged in (c), (d).

Q systems, T observations, s window, P = s + 1 token width, K = s query entries, S pairs of token entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from icl import quantiles
from icl.checks.numbers import Numbers, of_kind
from icl.checks.sequential import ALPHA
from icl.checks.settings import fits_in_memory
from icl.errors import InputError
from icl.random import generator
from icl.tasks import DynamicalSystemLaw
from icl.theory.dynamical_system import (
    Covariances,
    Moments,
    covariances_of_systems,
    moments,
    pairs,
    quadratic_risk,
)
from icl.theory.quadratic import EPSILON, HeadsOptimum, QuadraticRisk
from icl.verdicts import ROUTE_ROUNDING

PARTS = 32  # of the drawn systems, for standard errors
CONFIDENCE = 3.2905  # of a two-sided 99.9 % interval
LEVEL = "99.9 % quantile of Student's t over parts of the drawn systems, shared among the entries"


def require_systems(samples: int, length: int) -> None:
    """Refuse fewer drawn systems than three in each part, and more than a part holds at once."""
    fits_in_memory(samples, 3 * PARTS, -(-(length**2) // PARTS))


def covariances_of(law: DynamicalSystemLaw, rng: np.random.Generator, systems: int) -> Tensor:
    """Draw systems from the law; return their C (Q, T, T)."""
    drawn = law.systems([rng], systems)
    noise, start = law.observation_noise, law.initial_variance
    return covariances_of_systems(
        drawn.A_RBDD[0], drawn.c_RBD[0], law.Sigma_w_RDD[0], noise, start, law.length
    )


def mean_over(C_QTT: Tensor) -> Covariances:
    """Return covariances with equal weights."""
    return Covariances(torch.full((len(C_QTT),), 1 / len(C_QTT), dtype=torch.float64), C_QTT)


def scale_to_mean_square_one(C_QTT: Tensor) -> Tensor:
    """Scale the sequences of every system, A and -A alike: else few systems carry every mean."""
    return C_QTT / C_QTT.diagonal(dim1=1, dim2=2).mean(-1)[:, None, None]


def z_of_parts(parts_CE: Tensor) -> Tensor:
    """Return means over the parts in standard errors; 0 where all parts are."""
    mean_E, stderr_E = parts_CE.mean(0), parts_CE.std(0) / len(parts_CE) ** 0.5
    return torch.where(mean_E == 0, 0.0, mean_E / stderr_E)


def quantile(entries: int) -> float:
    """Return what none of so many z of parts exceeds at LEVEL."""
    return quantiles.student(ALPHA / (2 * entries), PARTS - 1)


class Population:
    """Moments of a law at one window, in equal parts where systems are drawn."""

    def __init__(self, law: DynamicalSystemLaw, samples: int, seed: int) -> None:
        self.law, self.exact = law, law.covariances is not None
        self.kind = "exact" if self.exact else "sampled"
        if law.covariances is not None:
            self.parts = [law.covariances]
        else:
            rng, each = generator(seed, "check"), -(-samples // PARTS)
            self.parts = [mean_over(covariances_of(law, rng, each)) for _ in range(PARTS)]

    @cached_property
    def moments_of_parts(self) -> list[Moments]:
        """The moments of every part."""
        return [moments(part, self.law.window) for part in self.parts]

    @cached_property
    def moments(self) -> Moments:
        """Return the mean of the moments over the parts."""
        return average(self.moments_of_parts)

    @cached_property
    def risk(self) -> QuadraticRisk:
        """The risk as a convex form."""
        return quadratic_risk(self.moments, self.law.window)

    def condition(self) -> Numbers:
        """Return the condition number of the risk as a convex form, by eigenvalues and by singular values."""
        bound, form_KSKS = self.risk.convex_bound(), self.moments.form_KSKS
        size = form_KSKS.shape[0] * form_KSKS.shape[1]
        a_S, b_S = pairs(self.law.window)
        root_S = (2 - (a_S == b_S).double()).sqrt()  # of orthonormal coordinates of X_k
        scaled = form_KSKS * root_S[:, None, None] * root_S
        values = torch.linalg.svdvals(scaled.reshape(size, size))
        return (
            of_kind(self.kind, condition=bound.condition)
            .means("condition number of the convex form")
            .also_by(
                "singular values of the form",
                condition=float(values[0] / values[bound.rank - 1]),
                size=size * EPSILON * bound.condition**2 / ROUTE_ROUNDING,
            )
        )

    def stderr(self, statistic: Callable[[Moments], float]) -> float:
        """Return the jackknife's standard error over the parts; zero where the moments are exact."""
        parts, count = self.moments_of_parts, len(self.moments_of_parts)
        if count == 1:
            return 0.0
        values = [statistic(average(parts[:i] + parts[i + 1 :])) for i in range(count)]
        return float(np.std(values) * (count - 1) ** 0.5)

    @property
    def note(self) -> str:
        """Return the sentence that says how the mean over systems is taken."""
        if self.law.pool is not None:
            return (
                f"The mean over systems is taken over the {len(self.parts[0].weight_Q)} systems of the law."
            )
        if self.law.has_listed_modes:
            return "The mean over systems is exact: A and -A; in (b) by rules in |c|^2 and c's direction."
        if self.exact:
            return (
                "The mean over systems is exact: Gauss rules in each eigenvalue, in |c|^2 and c's direction."
            )
        return f"The mean over systems is that of {PARTS * len(self.parts[0].weight_Q)} drawn systems."


def average(parts: list[Moments]) -> Moments:
    """Return the mean of moments."""

    def mean(tensors: list[Tensor]) -> Tensor:
        return torch.stack(tensors).mean(0)

    return Moments(
        mean([part.form_KSKS for part in parts]),
        mean([part.linear_KS for part in parts]),
        mean([part.constant for part in parts]),
    )


def balance(optimum: HeadsOptimum, window: int) -> tuple[Tensor, Tensor]:
    """Return (b, a_KP) of one head at ||b|| = ||a||, b's last entry not below zero."""
    b_P, a_KP = optimum.b_HP[0], optimum.a_HKP[0, :window]
    scale = (a_KP.norm() / b_P.norm()).sqrt() * (-1 if b_P[-1] < 0 else 1)
    return b_P * scale, a_KP / scale


def exchange(b_P: Tensor, a_KP: Tensor) -> tuple[Tensor, Tensor]:
    """Exchange b and a_1 at s = 1, which is the same predictor; elsewhere there is no such symmetry."""
    if len(a_KP) != 1:
        raise InputError("check.window: the mirror exists for window 1 only")
    return a_KP[0], b_P[None]
