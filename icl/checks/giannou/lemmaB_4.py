"""giannou, Lemma B.4: bounds of w(t) = t - log(1 + t) and w*(t) = -t - log(1 - t), and (B.7), which rests on
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad

from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.theory.quadratic import EPSILON

SERIES = 1e-2  # below, both functions are summed as series: the difference would lose all digits
TERMS = 12  # of a series in t <= SERIES, whose rest is below t^14
THRESHOLD = 1 / 6  # of lambda in phase two
REMARKS = [
    "The lemma says t >= 0 for both functions, but w* is defined for t < 1 only, and its lower bound t^2 / "
    "(2 - t) changes sign at 2.",
    "(B.7), g - g* <= (3/5) lambda^2 for lambda < 1/6, is the lemma's upper bound of w* at 1/6. The least "
    "constant there is w*(1/6) / (1/6)^2, about .564.",
]


@dataclass(eq=False)
class LemmaB4:
    """Settings: number of t, evenly spaced in the logarithm, at which the inequalities are tried."""

    reference = "Lemma B.4 (Nesterov 2018, Lemma 5.1.5) and eq. (B.7)"
    claim = (
        "t^2 / (2 (1 + t)) <= t^2 / (2 (1 + 2 t / 3)) <= w(t) <= t^2 / (2 + t) for t >= 0, t^2 / (2 - t) <= "
        "w*(t) <= t^2 / (2 (1 - t)) for t < 1, and w*(t) <= (3/5) t^2 for t <= 1/6."
    )

    points: int = integer(2000, 10, 10**6)

    def __post_init__(self) -> None:
        validate(self)

    def measure(self) -> Finding:
        t_N = np.geomspace(1e-6, 1e6, self.points)
        below_N = np.geomspace(1e-6, 1 - 1e-9, self.points)
        phase_N = np.geomspace(1e-6, THRESHOLD, self.points)
        w_N, dual_N = omega(t_N), omega_dual(below_N)
        chains = (
            (t_N**2 / (2 * (1 + t_N)), t_N**2 / (2 * (1 + 2 * t_N / 3))),
            (t_N**2 / (2 * (1 + 2 * t_N / 3)), w_N),
            (w_N, t_N**2 / (2 + t_N)),
            (below_N**2 / (2 - below_N), dual_N),
            (dual_N, below_N**2 / (2 * (1 - below_N))),
        )
        share = float((omega_dual(phase_N) / phase_N**2).max())
        sharper = _excess(w_N, t_N**2 / (2 + 1.2 * t_N))
        rounding = 64 * EPSILON / SERIES**2  # of log(1 + t) - t beside t^2 / 2, at t = SERIES
        return finding(
            [
                tried(excess=max(_excess(low_N, high_N) for low_N, high_N in chains))
                .means("largest relative amount by which a lower side exceeds the upper side")
                .at_most(rounding, "rounding of differences of size t^2 between numbers of size t"),
                tried(share=share).means("largest w*(t) / t^2 up to t = 1/6").at_most(0.6, "eq. (B.7), 3/5"),
                tried(slopes_off=_slopes_off(below_N[(below_N > 1e-3) & (below_N < 0.9)]))
                .means("largest relative difference of slopes of w and w* from t / (1 + t) and t / (1 - t)")
                .at_most(1e-4, "central differences with steps of t / 1000", otherwise="undecided"),
                exact(least_constant=36 * float(omega_dual(np.array([THRESHOLD]))[0]))
                .means("least constant with which (B.7) is true")
                .also_by(
                    "the integral of s / (1 - s)",
                    least_constant=36 * quad(lambda s: s / (1 - s), 0, THRESHOLD, epsabs=1e-14)[0],
                ),
            ],
            Control("the same amount for the bound t^2 / (2 + 1.2 t) of w", sharper, sharper > rounding),
            remarks=REMARKS,
        )


def omega(t_N: np.ndarray) -> np.ndarray:
    """t - log(1 + t)."""
    series_N = sum((-1) ** k * t_N**k / k for k in range(2, TERMS + 2))
    return np.where(t_N < SERIES, series_N, t_N - np.log1p(t_N))


def omega_dual(t_N: np.ndarray) -> np.ndarray:
    """-t - log(1 - t)."""
    series_N = sum(t_N**k / k for k in range(2, TERMS + 2))
    return np.where(t_N < SERIES, series_N, -t_N - np.log1p(-t_N))


def _excess(low_N: np.ndarray, high_N: np.ndarray) -> float:
    return float(((low_N - high_N) / high_N).max())


def _slopes_off(t_N: np.ndarray) -> float:
    """Differences of both functions, by a formula that shares nothing with them."""
    h_N = t_N / 1000
    off = []
    for function, slope_N in ((omega, t_N / (1 + t_N)), (omega_dual, t_N / (1 - t_N))):
        found_N = (function(t_N + h_N) - function(t_N - h_N)) / (2 * h_N)
        off.append(float(np.abs(found_N / slope_N - 1).max()))
    return max(off)
