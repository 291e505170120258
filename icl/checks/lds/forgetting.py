"""lds, eq. (3) and sections 3 and 4.1: what an AR(s) predictor leaves out vanishes exponentially in s.

With the steady-state gain K of the predictor, x^_{t+1} = A x^_t + K e_t and y_t = c^T x^_t + e_t, so y_{t+s}
= sum_{j<s} c^T F^j K y_{t+s-1-j} + c^T F^s x^_t + e_{t+s}, F = A - K c^T: eq. (3). Its second term has the
variance c^T F^s X F^sT c, X = Cov(x^_t), which falls like rho(F)^2s; and the best AR(s) predictor of a
system is no worse than (3) without that term (Kozdoba et al. 2019, Theorem 2, of one system in the place of a
finite family). In (2) k is the gain of the filter, and K = A k.

Q systems, D states, W windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from icl.checks.lds.support.sequences import NoisySequences
from icl.checks.numbers import Numbers, finding, tried
from icl.checks.settings import fits_in_memory, integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.quadratic import EPSILON

NEAR = 0.01  # of the Kalman filter's variance, for the windows that are told
ROUNDING = "rounding: 2^-52 times 64 d^2, relative to the terms and to how near rho(A) is to 1"


@dataclass(eq=False)
class Forgetting(NoisySequences):
    """Settings: setting, length (the longest window), dim, seed, drawn systems (`samples`), noise."""

    reference = "Section 3, eq. (3) and after; Section 4.1, on Theorem 2 of Kozdoba et al. 2019"
    claim = (
        "Given the system, rho(A - K c^T) < 1, so that the second term of eq. (3) vanishes exponentially in "
        "s, and the best AR(s) predictor comes as close to the Kalman filter as that term is small."
    )

    samples: int = 400
    length: int = integer(64, 3, 200, "the covariances of all windows fill the memory")
    dim: int = integer(5, 1, 20, "the Riccati equations of all systems take minutes")

    def __post_init__(self) -> None:
        super().__post_init__()
        fits_in_memory(self.samples, 1, self.dim**2)
        self.law = self.law_at(1)

    def measure(self) -> Finding:
        drawn = self.law.systems([generator(self.seed, "check")], self.samples)
        noise, Sigma_w_DD = self.law.observation_noise, self.law.Sigma_w_RDD[0].numpy()
        systems = [
            SteadyState(A_DD, c_D, Sigma_w_DD, noise, self.length)
            for A_DD, c_D in zip(drawn.A_RBDD[0].numpy(), drawn.c_RBD[0].numpy(), strict=True)
        ]
        bound = EPSILON * 64 * self.dim**2
        y_T = generator(self.seed, "eval").standard_normal(self.length)
        printed = max(one.error_of_3(y_T, one.filter_gain_D) for one in systems)
        return finding(
            [
                self._largest(systems),
                tried(error_of_3=max(one.error_of_3(y_T, one.gain_D) for one in systems))
                .means("largest difference of eq. (3) with K from the filter, relative to its terms")
                .at_most(bound * self.length, ROUNDING),
                tried(excess_over_term=max(one.excess_over_term() for one in systems))
                .means(
                    "largest excess of the best AR(s) predictor over (3) without its second term, of the "
                    "variance of y"
                )
                .at_most(bound, ROUNDING),
                tried(
                    windows_within_1_percent=_median_and_largest([one.window(NEAR) for one in systems]),
                    radius_of_printed_gain=max(_radius(one.closed(one.filter_gain_D)) for one in systems),
                ).means(
                    windows_within_1_percent="least window within 1 % of the Kalman filter, median and "
                    f"largest of the systems (at most {self.length})",
                    radius_of_printed_gain="largest spectral radius of A - k c^T with (2)'s gain k",
                ),
            ],
            Control(
                "the difference of eq. (3) from the filter with the gain k of (2), as printed",
                printed,
                printed > bound * self.length,
            ),
            remarks=[
                "In (3) the steady-state gain k must be the predictor's, A times the gain of (2): with the "
                f"gain of (2) itself (3) is off by up to {printed:.2g} of its terms.",
                "The rate is that of one system and not uniform: two eigenvalues near one another and near "
                "1, or a small entry of c, bring rho(A - K c^T) near 1.",
            ],
        )

    def _largest(self, systems: list[SteadyState]) -> Numbers:
        return (
            tried(largest_radius=max(_radius(one.closed(one.gain_D)) for one in systems))
            .means("largest spectral radius of A - K c^T over the systems")
            .at_most(1 - EPSILON * self.dim, "Kalman filter convergence: the spectral radius is below 1")
        )


class SteadyState:
    """The steady state of one system's Kalman filter, and the variances that eq. (3) speaks of."""

    def __init__(
        self, A_DD: np.ndarray, c_D: np.ndarray, Sigma_w_DD: np.ndarray, noise: float, longest: int
    ) -> None:
        self.A_DD, self.c_D, self.noise, self.longest = A_DD, c_D, noise, longest
        P_DD = scipy.linalg.solve_discrete_are(A_DD.T, c_D[:, None], Sigma_w_DD, [[noise]])
        self.variance = float(c_D @ P_DD @ c_D) + noise  # of e_t
        self.filter_gain_D = P_DD @ c_D / self.variance
        self.gain_D = A_DD @ self.filter_gain_D
        self.state_DD = scipy.linalg.solve_discrete_lyapunov(A_DD, Sigma_w_DD)
        self.scale = float(c_D @ self.state_DD @ c_D) + noise  # of y_t

    def closed(self, gain_D: np.ndarray) -> np.ndarray:
        """Return A - gain c^T."""
        return self.A_DD - np.outer(gain_D, self.c_D)

    def error_of_3(self, y_T: np.ndarray, gain_D: np.ndarray) -> float:
        """Compare the predictor's recursion over y with eq. (3) from its first state on, with this gain."""
        state_D = first_D = np.ones(len(self.c_D))
        for y in y_T:
            state_D = self.A_DD @ state_D + self.gain_D * (y - self.c_D @ state_D)
        row_D, terms = self.c_D, []
        for y in y_T[::-1]:
            terms.append(row_D @ gain_D * y)
            row_D = row_D @ self.closed(gain_D)
        terms.append(row_D @ first_D)
        return float(abs(self.c_D @ state_D - sum(terms)) / np.abs(terms).sum())

    def left_out(self) -> np.ndarray:
        """Return the variance of (3)'s second term at s = 1 .. longest: X = Cov(x) - P, F^s."""
        P_DD = scipy.linalg.solve_discrete_lyapunov(
            self.A_DD, np.outer(self.gain_D, self.gain_D) * self.variance
        )
        row_D, found = self.c_D, []
        for _ in range(self.longest):
            row_D = row_D @ self.closed(self.gain_D)
            found.append(row_D @ P_DD @ row_D)
        return np.array(found)

    def excess(self) -> np.ndarray:
        """Return the variance of the best AR(s) predictor's error less that of e_t, s = 1 .. longest, from
        stationary covariances of y."""
        row_D, lags = self.c_D, []
        for _ in range(self.longest + 1):
            lags.append(row_D @ self.state_DD @ self.c_D)
            row_D = row_D @ self.A_DD
        lags[0] += self.noise
        factor = np.linalg.cholesky(scipy.linalg.toeplitz(lags))
        return factor.diagonal()[1:] ** 2 - self.variance

    def excess_over_term(self) -> float:
        """Return the largest excess over the second term's variance, over what rounding leaves of y's."""
        return float((self.excess() - self.left_out()).max() / self.scale)

    def window(self, share: float) -> int:
        """Return the least window at which the excess is below this share of e_t's variance."""
        near = self.excess() < share * self.variance
        return int(near.argmax()) + 1 if near.any() else self.longest


def _radius(M_DD: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(M_DD)).max())


def _median_and_largest(values: list[int]) -> list[float]:
    return [float(np.median(values)), max(values)]
