"""lds, section 5: "{y_t} approaches stationarity exponentially fast". True given the system, not on average.

Given (A, c), E[y_t y_{t+k}] - gamma(k) = c^T A^t (Sigma_0 - S) (A^T)^{t+k} c with S = A S A^T + Sigma_w, and
that falls like rho(A)^2t. On average over v ~ U[-1, 1], E v^2t = 1 / (2t + 1), and E[y_t^2] =
E|c|^2 (sigma_0^2 E v^2t + sigma_w^2 sum_{k<t} E v^2k) + sigma_v^2 grows like (sigma_w^2 / 2) log t: gamma(0)
has no mean.

Q systems, T observations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import fits_in_memory, integer
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.tasks.dynamical_system import HALF_WIDTH
from icl.theory.dynamical_system import covariances_of_systems
from icl.theory.quadratic import EPSILON

INSIDE = 0.9  # of the control's eigenvalues: the mean converges
HALF = 0.5  # of the growth of a logarithm


@dataclass(eq=False)
class Stationarity(NoisySequences):
    """Settings: setting (a or b, whose means are exact), length t, of t and 2 t, dim, seed, number of drawn
    systems (`samples`), noise."""

    reference = "Section 5, before eq. (15); Assumption 3.1"
    claim = (
        "Given the system, the second moments of y converge exponentially fast, like rho(A)^2t. On average "
        "over the systems they do not converge: E[y_t^2] grows like the logarithm of t."
    )

    samples: int = 400
    length: int = integer(30, 4, 100, "sequences twice as long fill the memory")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.setting not in ("a", "b"):
            raise InputError(f"check.setting={self.setting}: must be a or b, whose means are exact")
        fits_in_memory(self.samples, 1, self.length**2 + self.dim**2)
        self.law, self.longer = self.law_at(1), self.law_at(1, 2 * self.length)

    def measure(self) -> Finding:
        means_T, written = self._means(), [self._written(t) for t in range(1, 2 * self.length + 1)]
        growth = float(means_T[-1] - means_T[self.length - 1])
        limit = self._size * self.process_noise * math.log(2) / 2
        inside = self._growth_inside()
        return finding(
            [
                tried(deviation_error=self._deviation_error())
                .means("largest difference of E[y_t y_{t+k}] from gamma(k) and a term in A^t, relative")
                .at_most(
                    EPSILON * 64 * self.length * self.dim**2,
                    "rounding of 64 T d^2 operations, relative to |S|, which grows with 1 / (1 - rho^2)",
                ),
                exact(growth=growth / limit)
                .means("growth of E[y_t^2] from t to 2 t, as a share of that of (sigma_w^2 E|c|^2 / 2) log t")
                .compared_by("mean_error", "sums of 1 / (2k + 1)")
                .above(HALF, "half the growth of the logarithm"),
                exact(mean_error=float(np.abs(means_T / written - 1).max()))
                .means("largest difference of E[y_t^2] by quadrature from sums of 1 / (2k + 1), relative")
                .compared_by("mean_error", "quadrature over systems, and sums of 1 / (2k + 1)")
                .at_most(EPSILON * 64 * self.length, "rounding of sums of T terms"),
                exact(mean_squares=means_T[[0, self.length - 1, -1]].tolist())
                .means("values of E[y_t^2] at 1, t and 2 t")
                .compared_by("mean_error", "sums of 1 / (2k + 1)"),
            ],
            Control(
                f"the same growth for eigenvalues uniform on [-{INSIDE}, {INSIDE}]",
                inside / limit,
                inside < HALF * limit,
            ),
            remarks=[
                "E[y_t y_{t+k}] -> gamma(k) is true given the system only. On average over v ~ U[-1, 1] the "
                "transient falls like 1 / (2t + 1), and gamma(0) = E sigma_w^2 / (1 - v^2) is infinite: "
                f"E[y_t^2] grows by {growth:.2g} from t = {self.length} to {2 * self.length}."
            ],
        )

    @property
    def _size(self) -> float:
        """E|c|^2."""
        return self.dim * (1.0 if self.setting == "a" else HALF_WIDTH**2 / 3)

    def _means(self) -> np.ndarray:
        """Return E[y_t^2] for t = 1 .. 2 T by the law's quadrature."""
        part = self.longer.covariances
        assert part is not None
        return (part.weight_Q @ part.covariance_QTT.diagonal(dim1=1, dim2=2)).numpy()

    def _written(self, t: int) -> float:
        driven = sum(1 / (2 * k + 1) for k in range(t))
        own = self.initial_variance / (2 * t + 1) + self.process_noise * driven
        return self._size * own + self.observation_noise

    def _growth_inside(self) -> float:
        """Return the growth for v on [-INSIDE, INSIDE], where E v^2k = INSIDE^2k / (2k + 1)."""
        T = self.length
        driven = sum(INSIDE ** (2 * k) / (2 * k + 1) for k in range(T, 2 * T))
        start = INSIDE ** (4 * T) / (4 * T + 1) - INSIDE ** (2 * T) / (2 * T + 1)
        return self._size * (self.process_noise * driven + self.initial_variance * start)

    def _deviation_error(self) -> float:
        """Compare the recursion's C with gamma(k) + c^T A^t (Sigma_0 - S) (A^T)^{t+k} c on drawn systems."""
        drawn = self.law.systems([generator(self.seed, "check")], self.samples)
        Sigma_w_DD, T, D = self.law.Sigma_w_RDD[0], self.length, self.dim
        noise, start = self.observation_noise, self.initial_variance
        C_QTT = covariances_of_systems(drawn.A_RBDD[0], drawn.c_RBD[0], Sigma_w_DD, noise, start, T).numpy()
        errors = []
        for A_DD, c_D, C_TT in zip(drawn.A_RBDD[0].numpy(), drawn.c_RBD[0].numpy(), C_QTT, strict=True):
            S_DD = scipy.linalg.solve_discrete_lyapunov(A_DD, Sigma_w_DD.numpy())
            rows_TD = np.stack([c_D @ np.linalg.matrix_power(A_DD, t) for t in range(T + 1)])
            lags_T = rows_TD[:T] @ S_DD @ c_D
            limit_TT = scipy.linalg.toeplitz(lags_T) + noise * np.eye(T)
            transient_TT = rows_TD[1:] @ (start * np.eye(D) - S_DD) @ rows_TD[1:].T
            sizes = np.abs(c_D) @ np.abs(S_DD) @ np.abs(c_D) + noise
            radius = np.abs(np.linalg.eigvals(A_DD)).max()
            errors.append(np.abs(C_TT - limit_TT - transient_TT).max() / sizes * (1 - radius**2))
        return float(max(errors))
