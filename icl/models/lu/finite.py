"""lu: the exact risk of reduced linear attention at any size, for any law of the tasks, and its least value.

x ~ N(0, I/d), y = <x, w> + noise of variance rho, l examples. The model predicts x^T Gamma h with the
features h = [(d/l) sum_i y_i x_i ; (1/l) sum_i y_i^2], Gamma a d x (d+1) matrix. Given w, sum_i y_i^2 is
s chi^2_l with s = |w|^2/d + rho, and given the labels sum_i y_i x_i is Gaussian; the risk then takes no more
of the tasks than their second moment R, and the means of s, s^2 and s w.

K tasks, D covariates, H = D + 1 features.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskMoments:
    """Moments of a law of tasks: E w w^T, and of s = |w|^2/d + rho the means E s, E s^2, E s w."""

    R_DD: Array
    s: float
    s_squared: float
    sw_D: Array

    @classmethod
    def of(cls, w_KD: Array, rho: float) -> Self:
        """Return those of tasks that are equally likely."""
        K, D = w_KD.shape
        s_K = np.square(w_KD).sum(1) / D + rho
        return cls(w_KD.T @ w_KD / K, float(s_K.mean()), float((s_K**2).mean()), s_K @ w_KD / K)

    @classmethod
    def new(cls, dim: int, rho: float, law: str = "sphere") -> Self:
        """Return those of new tasks, uniform on |w|^2 = d or standard Gaussian."""
        spread = 0.0 if law == "sphere" else 2 / dim
        return cls(np.eye(dim), 1 + rho, (1 + rho) ** 2 + spread, np.zeros(dim))


@dataclass(frozen=True, eq=False)
class FiniteRisk:
    """risk(Gamma) = E s + tr(Gamma B Gamma^T)/d - 2 tr(Gamma A)/d, A = E h w^T and B = E h h^T."""

    tasks: TaskMoments
    examples: int

    @property
    def A_HD(self) -> Array:
        return np.vstack([self.tasks.R_DD, self.tasks.sw_D])

    @property
    def B_HH(self) -> Array:
        tasks, each, D = self.tasks, 1 / self.examples, len(self.tasks.sw_D)
        B_HH = np.empty((D + 1, D + 1))
        B_HH[:D, :D] = each * D * tasks.s * np.eye(D) + (1 + each) * tasks.R_DD
        B_HH[:D, D] = B_HH[D, :D] = (1 + 2 * each) * tasks.sw_D
        B_HH[D, D] = (1 + 2 * each) * tasks.s_squared
        return B_HH

    def risk(self, Gamma_DH: Array) -> float:
        D = len(Gamma_DH)
        quadratic = np.vdot(Gamma_DH @ self.B_HH, Gamma_DH)
        return float(self.tasks.s + quadratic / D - 2 * np.vdot(Gamma_DH, self.A_HD.T) / D)

    def best(self) -> Array:
        """Return the Gamma of least risk, that of infinitely many pretraining prompts: Gamma B = A^T."""
        return np.asarray(cho_solve(cho_factor(self.B_HH), self.A_HD)).T
