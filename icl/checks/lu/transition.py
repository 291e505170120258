"""lu: from one pretraining task a dimension on (kappa = 1), attention that is pretrained long generalizes.

K values of kappa, A of alpha, T tasks, D covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icl.checks.lu.support.pretraining import Array, Pretraining
from icl.checks.lu.support.settings import MAX_RATIO
from icl.checks.numbers import exact, finding, sampled, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.errors import InputError, real, reals
from icl.random import generator
from icl.theory.lu.finite import FiniteRisk, TaskMoments
from icl.theory.lu.limits import Limit

NEW = 2000  # tasks, whose distance from the nearest old one is averaged
ALPHAS = 10.0 ** np.arange(4, 9)
LEAST_RATE = 0.45
DMMSE = (
    "a 99.9 % interval: among k tasks the largest cosine with a new one has a mean of at most "
    "sqrt(2 log(k) / d), as each is sub-Gaussian of variance 1/d"
)
SOURCE = "0.45: the distance at kappa = 1 is of order sqrt(x*), a power of 1/2, and of higher order elsewhere"


@dataclass(eq=False)
class Transition:
    """Values of kappa, noise rho; dimension at which the same is solved at finite d."""

    kappas: Sequence[float] = (0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0)
    rho: float = 0.01
    dim: int = integer(100, 2, 500, "a solve takes minutes")
    seed: int = integer(0, 0)

    reference = "lu, Figure 4: the transition in task diversity"
    claim = "As tau, then alpha, grow, e_ICL - e_IDG tends to max(1 - kappa, 0): a transition at kappa = 1."

    def __post_init__(self) -> None:
        validate(self)
        self.kappas = reals("check.kappas", self.kappas, None, 0, open_low=True)
        if max(self.kappas) > MAX_RATIO / self.dim or min(self.kappas) < 1 / MAX_RATIO:
            raise InputError(
                f"check.kappas={self.kappas}: must be from {1 / MAX_RATIO:g} to {MAX_RATIO / self.dim:g}; "
                "beyond, tasks do not fit in memory, or the series at large alpha is no longer exact"
            )
        self.rho = real("check.rho", self.rho, 0)

    def measure(self) -> Finding:
        gap_AK = np.array([[self._gap(alpha, kappa) for kappa in self.kappas] for alpha in ALPHAS])
        rate, control = self._rate(gap_AK, 1.0), self._rate(gap_AK, 0.5)
        tasks = [Pretraining.at(self.dim, 1.0, kappa, 1.0, self.rho) for kappa in self.kappas]
        finite = [self._finite(sizes, i) for i, sizes in enumerate(tasks)]
        pairs = [(gap, distance) for gap, distance, _ in finite]
        gap_K, stderr_K = np.array([nearest for *_, nearest in finite]).T
        least_K = [2 - 2 * np.sqrt(2 * np.log(sizes.tasks or 1) / self.dim) for sizes in tasks]
        return finding(
            [
                exact(rate=rate)
                .means("power of 1/alpha with which the largest distance from max(1 - kappa, 0) decays")
                .in_tests("integrals over the law of Marchenko and Pastur")
                .above(LEAST_RATE, SOURCE),
                tried(finite_error=max(abs(gap - expected) for gap, expected in pairs))
                .means(
                    "largest difference at finite d from the distance of new tasks from the old ones' plane"
                )
                .at_most(0.1 / self.dim, "a tenth of 1/d, by which d differs from infinity"),
                exact(gaps=gap_AK[-1].tolist())
                .means("e_ICL - e_IDG at the largest alpha, by kappa")
                .in_tests("integrals over the law of Marchenko and Pastur"),
                tried(finite_gaps=[gap for gap, _ in pairs]).means("same difference at finite d, by kappa"),
                sampled(dmmse_margin=float(((gap_K - least_K) / stderr_K).min()))
                .means("least margin of dMMSE's difference over its bound, in standard errors, over kappa")
                .in_tests("dMMSE on long prompts")
                .above(-QUANTILE, DMMSE),
                sampled(dmmse_gaps=gap_K.tolist(), dmmse_gaps_stderr=stderr_K.tolist())
                .means("e_ICL - e_IDG of dMMSE as alpha grows, at finite d, by kappa")
                .in_tests("dMMSE on long prompts"),
            ],
            Control(
                "the same power for a transition at kappa = 1/2, which must not decay",
                control,
                control < LEAST_RATE,
            ),
            notes=[
                "At finite d the best weights project on the plane through the tasks, which also uses their "
                "mean: the difference is (d - k + 1 + |m|^2) / d, m the part of the mean orthogonal to the "
                "tasks' differences, where k <= d.",
                "As alpha grows dMMSE takes the nearest pretraining task, so that its difference is the mean "
                "square distance of new tasks from that one. It is at least 2 - 2 sqrt(2 log(k) / d), which "
                "tends to 2 at every kappa: dMMSE has no transition at k = kappa d.",
            ],
        )

    def _gap(self, alpha: float, kappa: float) -> float:
        limit = Limit(float(alpha), kappa, np.inf, self.rho)
        return limit.icl - limit.idg

    def _rate(self, gap_AK: Array, at: float) -> float:
        """Return the power of 1/alpha by which the largest distance from max(1 - kappa / at, 0) falls."""
        off_A = np.abs(gap_AK - np.maximum(1 - np.array(self.kappas) / at, 0)).max(1)
        off_A = np.maximum(off_A, np.finfo(float).tiny)
        return float(np.log(off_A[0] / off_A[-1]) / np.log(ALPHAS[-1] / ALPHAS[0]))

    def _finite(self, sizes: Pretraining, number: int) -> tuple[float, float, tuple[float, float]]:
        """Return e_ICL - e_IDG of the best weights, the mean square distance of new tasks from the plane of
        the old ones, and that from the nearest old one with its standard error."""
        rng = generator(self.seed, "check", number)
        w_TD = sizes.draw_tasks(rng, sizes.tasks or 1)
        long = int(ALPHAS[-1]) * self.dim
        old, new = (
            FiniteRisk(tasks, long)
            for tasks in (TaskMoments.of(w_TD, self.rho), TaskMoments.new(self.dim, self.rho))
        )
        Gamma_DH = old.best()
        mean_D = w_TD.mean(0)
        _, size_T, plane_TD = np.linalg.svd(w_TD - mean_D, full_matrices=False)
        basis_TD = plane_TD[size_T > 1e-9 * max(size_T[0], 1)]
        off_D = mean_D - basis_TD.T @ (basis_TD @ mean_D)
        distance = 1 - len(basis_TD) / self.dim + float(off_D @ off_D) / self.dim
        return new.risk(Gamma_DH) - old.risk(Gamma_DH), distance, to_nearest(w_TD, sizes.draw_tasks(rng, NEW))


def to_nearest(w_TD: Array, new_ND: Array) -> tuple[float, float]:
    """Return the mean square distance of new tasks, all of |w|^2 = d, from the nearest of others over d, and
    its standard error."""
    nearest_N = 2 - 2 * (new_ND @ w_TD.T).max(1) / w_TD.shape[1]
    return float(nearest_N.mean()), float(nearest_N.std(ddof=1) / len(nearest_N) ** 0.5)
