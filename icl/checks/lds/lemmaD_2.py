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

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.evidence import lemma_d_2
from icl.checks.lds.sequences import NoisySequences
from icl.checks.sequential import KINDS, Comparison, compare
from icl.checks.verdict import Condition, Control, Finding, at_most, deciding
from icl.errors import whole
from icl.random import generator
from icl.tasks.dynamical_system import HALF_WIDTH, Systems
from icl.theory.dynamical_system import covariances_of_independent_modes, covariances_of_systems
from icl.theory.quadratic import EPSILON

SYSTEMS = 8  # of which (26) is written out
TIMES = 5  # moments are sampled at all pairs of these many instants, first and last among them


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
        recursion, size = self._recursion_error()
        measured: dict[str, object] = {"recursion_error": recursion}
        conditions: list[Condition] = [
            at_most("recursion_error", recursion, size, "rounding: 2^-52 times 8 T d operations an entry")
        ]
        if self.law.has_independent_modes:
            error = self._mean_error()
            measured["mean_error"] = error
            bound = 64 * EPSILON * self.law.length
            conditions.append(at_most("mean_error", error, bound, "rounding: 64 * 2^-52 T"))
        sampled, control = self._sampled(False), self._sampled(True)
        measured |= sampled.measured("sampled")
        verdict, decisive = deciding([*conditions, sampled.condition("sampled")])
        return Finding(
            verdict,
            measured,
            decisive,
            Control(
                "the same for (26) with half of Sigma_w, in standard errors",
                control.z,
                control.verdict == "fails",
            ),
            [f"(26) is written out for {SYSTEMS} systems; all that are simulated have C by the recursion."],
            ["(26) counts from y_0; a sequence y_1 .. y_T has its entries i, j >= 1."],
            kinds={"recursion_error": "tried", "mean_error": "exact", **KINDS},
        )

    def _recursion_error(self) -> tuple[float, float]:
        law = self.law
        drawn = law.systems([generator(self.seed, "check")], SYSTEMS)
        A_QDD, c_QD, levels = drawn.A_RBDD[0], drawn.c_RBD[0], (law.observation_noise, law.initial_variance)
        C_QTT = covariances_of_systems(A_QDD, c_QD, law.Sigma_w_RDD[0], *levels, law.length)
        error = 0.0
        for A_DD, c_D, C_TT in zip(A_QDD, c_QD, C_QTT, strict=True):
            printed_TT = lemma_d_2(A_DD, c_D, law.Sigma_w_RDD[0], *levels, law.length)
            sizes_TT = lemma_d_2(A_DD.abs(), c_D.abs(), law.Sigma_w_RDD[0].abs(), *levels, law.length)
            error = max(error, float(((C_TT - printed_TT).abs() / sizes_TT).max()))
        return error, EPSILON * 8 * law.length * law.states

    def _mean_error(self) -> float:
        """Gauss rules against E[v^n] = 1 / (n + 1), largest error over the diagonal's root mean."""
        law, T = self.law, self.law.length
        exact = covariances_of_independent_modes(**law.mode_arguments())
        mean_TT = torch.einsum("q,qtu->tu", exact.weight_Q, exact.covariance_QTT)
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
        scale = np.sqrt(np.outer(closed.diagonal(), closed.diagonal()))
        return float((np.abs(mean_TT.numpy() - closed) / scale).max())

    def _sampled(self, wrong: bool) -> Comparison:
        """Of 1 + (y_i y_j - C_ij) / sqrt(C_ii C_jj): mean 1 given every system. One sequence for each."""
        law, step = self.law, itertools.count()
        times = sorted({int(t) for t in np.linspace(0, law.length - 1, TIMES)})
        i_K, j_K = torch.tensor(list(itertools.combinations_with_replacement(times, 2))).T

        def draw(count: int) -> Tensor:
            rng = generator(self.seed, "control" if wrong else "eval", next(step))
            systems: Systems = law.systems([rng], count)
            y_QT = law.observations(systems, [rng])[0]
            Sigma_w_DD = law.Sigma_w_RDD[0] * (0.5 if wrong else 1.0)
            A_QDD, c_QD = systems.A_RBDD[0], systems.c_RBD[0]
            levels = (law.observation_noise, law.initial_variance)
            C_QTT = covariances_of_systems(A_QDD, c_QD, Sigma_w_DD, *levels, law.length)
            scale_QK = (C_QTT[:, i_K, i_K] * C_QTT[:, j_K, j_K]).sqrt()
            return 1 + (y_QT[:, i_K] * y_QT[:, j_K] - C_QTT[:, i_K, j_K]) / scale_QK

        return compare(
            draw,
            torch.ones(len(i_K), dtype=torch.float64),
            2000,
            self.samples // 8 if wrong else self.samples,
            "sequences",
        )
