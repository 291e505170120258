"""lds, Lemma D.2: E[y_i y_j] = E[c^T A^i Sigma_0 A^j^T c] + sum_k E[c^T A^(i-1-k) Sigma_w A^(j-1-k)^T c] +
1{i=j} sigma_v^2.

Three ways: (26) itself, by powers, against the recursion of the state's covariance, system by system, to
rounding; its mean in settings (a) and (b) in closed form, E[v^n] = 1 / (n + 1) for even n, against Gauss
rules; simulated sequences, each product of observations over what (26) says of its system.

Q systems, T observations.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.evidence import lemma_d_2
from icl.checks.lds.support.second_moments import LEAST, closed_form_error, sizes_of_terms
from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.numbers import exact, finding, tried
from icl.checks.sequential import Comparison, compare
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.tasks.dynamical_system import Systems
from icl.theory.dynamical_system import covariances_of_systems
from icl.theory.quadratic import EPSILON

SYSTEMS = 8  # of which (26) is written out
TIMES = 5  # moments are sampled at all pairs of these many instants, first and last among them
TERMS = ("Sigma_w", "sigma_v^2", "Sigma_0")
LEFT = 0.25  # of the largest term, in the control


@dataclass(eq=False)
class LemmaD2(NoisySequences):
    """Settings: setting, length T, dim, seed, samples (systems simulated), noise levels."""

    reference = "Lemma D.2, eq. (26)"
    claim = "The second moments E[y_i y_j] of the observations are given by eq. (26)."

    samples: int = integer(8000, 100, 10**8)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law = self.law_at(1)

    def measure(self) -> Finding:
        T = self.law.length
        mean = (
            exact(mean_error=closed_form_error(self.law))
            .means("largest difference of the mean of (26) over systems by quadrature from the closed form")
            .compared_by("mean_error", "quadrature over systems, and closed form")
            if self.law.has_independent_modes
            else exact()
        )
        control = self._compare(LEFT, "control")
        return finding(
            [
                tried(recursion_error=self._recursion_error())
                .means(
                    "largest difference of (26) from the recursion of the state covariance, relative to "
                    "its terms"
                )
                .at_most(
                    EPSILON * 8 * T * self.law.states,
                    "rounding: 2^-52 times 8 T d operations per entry, relative to its terms",
                ),
                mean.at_most(
                    EPSILON * (12 * T + 64),
                    "rounding: 2^-52 times 12 T operations and 64 of a quadrature weight, relative to the "
                    "terms",
                ),
                self._compare(1.0, "eval").numbers("sampled", "the scaled second moments of (26)"),
            ],
            Control(
                f"the deviation in standard errors with a quarter of {self._largest}, the largest term of "
                "(26)",
                control.z,
                control.verdict == "fails",
            ),
            notes=[
                f"Eq. (26) is written out for {SYSTEMS} systems; the covariances of the simulated ones "
                "come from the recursion of the state covariance."
            ],
            remarks=["Eq. (26) starts at y_0; a sequence y_1 .. y_T has the entries i, j >= 1."],
        )

    @cached_property
    def _systems(self) -> Systems:
        return self.law.systems([generator(self.seed, "check")], SYSTEMS)

    @cached_property
    def _largest(self) -> str:
        """Return the largest of the terms of (26), by their shares in sum_t E[y_t^2]."""
        twice = {name: self._mean_squares(name, 2.0) for name in TERMS}
        return max(TERMS, key=lambda name: float((twice[name] / self._mean_squares()).mean()))

    def _mean_squares(self, term: str = "", factor: float = 1.0) -> Tensor:
        return self._covariances(self._systems, term, factor).diagonal(dim1=1, dim2=2).sum(1)

    def _covariances(self, systems: Systems, term: str = "", factor: float = 1.0) -> Tensor:
        """Return (26) of each system by the recursion, one of its terms times a factor."""
        factors = dict.fromkeys(TERMS, 1.0) | {term: factor}
        return covariances_of_systems(
            systems.A_RBDD[0],
            systems.c_RBD[0],
            factors["Sigma_w"] * self.law.Sigma_w_RDD[0],
            factors["sigma_v^2"] * self.law.observation_noise,
            factors["Sigma_0"] * self.law.initial_variance,
            self.law.length,
        )

    def _recursion_error(self) -> float:
        """Return the error as a share of (26) with the norms of c, A^k and Sigma_w, and of their spread."""
        law, error = self.law, 0.0
        noise, initial, Sigma_w_DD = law.observation_noise, law.initial_variance, law.Sigma_w_RDD[0]
        systems = self._systems.A_RBDD[0], self._systems.c_RBD[0], self._covariances(self._systems)
        for A_DD, c_D, C_TT in zip(*systems, strict=True):
            sizes = c_D.square().sum() * torch.linalg.matrix_norm(Sigma_w_DD, 2), c_D.square().sum()
            size_TT = sizes_of_terms(A_DD, *sizes, noise, initial, law.length)
            off_TT = (C_TT - lemma_d_2(A_DD, c_D, Sigma_w_DD, noise, initial, law.length)).abs()
            error = max(error, float((off_TT / size_TT.clamp(min=LEAST)).max()))
        return error

    def _compare(self, factor: float, role: str) -> Comparison:
        """Compare 1 + (y_i y_j - C_ij) / sqrt(C_ii C_jj), of mean 1 given every system, with 1. One sequence
        for each."""
        step = itertools.count()
        times = sorted({int(t) for t in np.linspace(0, self.law.length - 1, TIMES)})
        i_K, j_K = torch.tensor(list(itertools.combinations_with_replacement(times, 2))).T

        def draw(count: int) -> Tensor:
            rng = generator(self.seed, role, next(step))
            systems: Systems = self.law.systems([rng], count)
            y_QT = self.law.observations(systems, [rng])[0]
            C_QTT = self._covariances(systems, self._largest, factor)
            # A state that has died out below the least of numbers is 0 both here and there.
            root_QT = C_QTT.diagonal(dim1=1, dim2=2).sqrt().clamp(min=LEAST)
            z_QT = y_QT / root_QT
            share_QK = C_QTT[:, i_K, j_K] / root_QT[:, i_K] / root_QT[:, j_K]
            return 1 + z_QT[:, i_K] * z_QT[:, j_K] - share_QK

        one_K = torch.ones(len(i_K), dtype=torch.float64)
        return compare(draw, one_K, 2000, self.samples, "sequences")
