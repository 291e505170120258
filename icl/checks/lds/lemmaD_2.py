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
from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.sequential import KINDS, Comparison, compare
from icl.checks.verdict import Condition, Control, Finding, at_most, combine
from icl.errors import whole
from icl.random import generator
from icl.tasks.dynamical_system import HALF_WIDTH, Systems
from icl.theory.dynamical_system import covariances_of_independent_modes, covariances_of_systems
from icl.theory.quadratic import EPSILON

SYSTEMS = 8  # of which (26) is written out
TIMES = 5  # moments are sampled at all pairs of these many instants, first and last among them
TERMS = ("Sigma_w", "sigma_v^2", "Sigma_0")
LEFT = 0.25  # of the largest term, in the control
LEAST = 1e-150  # a root mean square whose square is still a number


@dataclass(eq=False)
class LemmaD2(NoisySequences):
    """Settings: setting, length T, dim, seed, samples (systems simulated), noise levels."""

    reference = "Lemma D.2, eq. (26)"
    claim = "E[y_i y_j] is eq. (26)."

    samples: int = 8000

    def __post_init__(self) -> None:
        self.law = self.law_at(1)
        whole("check.samples", self.samples, 100, 10**8)

    def measure(self) -> Finding:
        recursion, bound = self._recursion_error(), EPSILON * 8 * self.law.length * self.law.states
        source = "rounding: 2^-52 times 8 T d operations an entry, shares of the norms of its terms"
        measured: dict[str, object] = {"recursion_error": recursion}
        conditions: list[Condition] = [at_most("recursion_error", recursion, bound, source)]
        if self.law.has_independent_modes:
            measured["mean_error"] = error = self._mean_error()
            source = "rounding: 2^-52 times 12 T operations and 64 of a rule's weight, shares of the terms"
            bound = EPSILON * (12 * self.law.length + 64)
            conditions.append(at_most("mean_error", error, bound, source))
        sampled, control = self._sampled(1.0, "eval"), self._sampled(LEFT, "control")
        measured |= sampled.measured("sampled")
        verdict, decisive = combine([*conditions, sampled.condition("sampled")])
        return Finding(
            verdict,
            measured,
            decisive,
            Control(
                f"the same for (26) with a quarter of {self._largest}, its largest term, in standard errors",
                control.z,
                control.verdict == "fails",
            ),
            [f"(26) is written out for {SYSTEMS} systems; all that are simulated have C by the recursion."],
            ["(26) counts from y_0; a sequence y_1 .. y_T has its entries i, j >= 1."],
            kinds={"recursion_error": "tried", "mean_error": "exact", **KINDS},
        )

    @cached_property
    def _drawn(self) -> Systems:
        return self.law.systems([generator(self.seed, "check")], SYSTEMS)

    @cached_property
    def _largest(self) -> str:
        """Return the largest of the terms of (26), by their shares in sum_t E[y_t^2]."""
        twice = {name: self._mean_squares(name, 2.0) for name in TERMS}
        return max(TERMS, key=lambda name: float((twice[name] / self._mean_squares()).mean()))

    def _mean_squares(self, term: str = "", factor: float = 1.0) -> Tensor:
        return self._covariances(self._drawn, term, factor).diagonal(dim1=1, dim2=2).sum(1)

    def _covariances(self, systems: Systems, term: str = "", factor: float = 1.0) -> Tensor:
        """(26) of each system by the recursion, one of its terms times a factor."""
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
        systems = self._drawn.A_RBDD[0], self._drawn.c_RBD[0], self._covariances(self._drawn)
        for A_DD, c_D, C_TT in zip(*systems, strict=True):
            norm_K = norms_of_powers(A_DD, law.length)
            sizes = c_D.square().sum() * torch.linalg.matrix_norm(Sigma_w_DD, 2), c_D.square().sum()
            size_TT = _spread(norm_K) * _of_norms(norm_K, *sizes, noise, initial)
            off_TT = (C_TT - lemma_d_2(A_DD, c_D, Sigma_w_DD, noise, initial, law.length)).abs()
            error = max(error, float((off_TT / size_TT.clamp(min=LEAST)).max()))
        return error

    def _mean_error(self) -> float:
        """Gauss rules against E[v^n] = 1 / (n + 1): the largest error, as a share of the sizes of the rules'
        terms, whose weights have both signs."""
        law, T = self.law, self.law.length
        exact = covariances_of_independent_modes(**law.mode_arguments())
        mean_TT = torch.einsum("q,qtu->tu", exact.weight_Q, exact.covariance_QTT)
        size_TT = torch.einsum("q,qtu->tu", exact.weight_Q.abs(), exact.covariance_QTT.abs())
        i_T = np.arange(1, T + 1)
        total = i_T[:, None] + i_T

        def moment(n: np.ndarray) -> np.ndarray:
            return np.where(n % 2 == 0, 1 / (n + 1.0), 0.0)

        steps = sum(
            np.where(np.minimum(i_T[:, None], i_T) >= k, moment(np.maximum(total - 2 * k, 0)), 0.0)
            for k in range(1, T + 1)
        )
        squared_norm = law.states * (1 if law.setting == "a" else HALF_WIDTH**2 / 3)
        closed = squared_norm * (law.initial_variance * moment(total) + law.process_noise * steps)
        closed += law.observation_noise * np.eye(T)
        return float(((mean_TT - torch.from_numpy(closed)).abs() / size_TT).max())

    def _sampled(self, factor: float, role: str) -> Comparison:
        """Of 1 + (y_i y_j - C_ij) / sqrt(C_ii C_jj): mean 1 given every system. One sequence for each."""
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


def norms_of_powers(A_DD: Tensor, count: int) -> Tensor:
    """(count + 1,): |A^k|, the largest singular values."""
    powers = [torch.eye(len(A_DD), dtype=torch.float64)]
    for _ in range(count):
        powers.append(powers[-1] @ A_DD)
    return torch.linalg.matrix_norm(torch.stack(powers), 2)


def _of_norms(norm_K: Tensor, process: Tensor, start: Tensor, noise: float, initial: float) -> Tensor:
    """(26) of numbers in the place of matrices."""
    T = len(norm_K) - 1
    driven_TT = process * torch.outer(norm_K[:T], norm_K[:T])
    for t in range(1, T):
        driven_TT[t, 1:] += driven_TT[t - 1, :-1]
    started_TT = start * initial * torch.outer(norm_K[1:], norm_K[1:])
    return started_TT + driven_TT + noise * torch.eye(T, dtype=torch.float64)


def _spread(norm_K: Tensor) -> float:
    """Return the growth of an early error relative to the result: (|A^k| |A| |A^l| / |A^(k+l+1)|)^2 at
    most, 1 where A is symmetric."""
    T = len(norm_K) - 1
    k_T = torch.arange(T)
    whole_TT = norm_K[(k_T[:, None] + k_T + 1).clamp(max=T)]
    ratio_TT = norm_K[:T, None] * norm_K[1] * norm_K[:T] / whole_TT
    reached = (k_T[:, None] + k_T < T) & (whole_TT > LEAST)
    return float(ratio_TT[reached].max()) ** 2 if bool(reached.any()) else 1.0
