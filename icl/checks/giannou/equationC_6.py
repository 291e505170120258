"""giannou, eqs. (C.6), (C.16) and (C.20): errors 4/N, 2/N and 2/N of N neurons that approximate p (1 - p), p
and the step size in steps.

A monotone function that takes values in an interval of length c is within c / (2 m) of a staircase of m
levels; a step between neighbouring levels is the difference of two ReLU neurons, a steep ramp. n examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError, real

STEEP = 1e-6  # width of a ramp
RADIUS = 40.0  # beyond, p is within 1e-17 of its limits
POINTS = 20_001
Function = Callable[[np.ndarray], np.ndarray]
REMARKS = [
    "The bounds are of the largest entry. For the Euclidean norm of the n entries, as (C.6) and (C.16) are "
    "written and (C.13) uses them, the error of the same construction is sqrt(n) times as large in the "
    "worst case, and exceeds 2/N for p and n > 4 examples, 4/N for p (1 - p) and n > 64 (euclidean). "
    "The proof needs the largest entry only: |diag(u_1)| is its spectral norm, and eps_3 is a mean.",
    "p (1 - p) <= 1/4: its staircase is four times as good as the proof's, which splits [0, 1].",
]


@dataclass(eq=False)
class EquationC6:
    """Settings: width N, number n of examples, mu."""

    reference = "Appendix C, eqs. (C.6), (C.16) and (C.20)"
    claim = (
        "N ReLU neurons approximate p (1 - p) within 4/N, p within 2/N and 2 sqrt(mu) / (2 sqrt(mu) + "
        "sqrt(x)) within 2/N, in every entry."
    )

    width: int = integer(64, 8, 4096)
    context: int = integer(100, 1, 5000)
    mu: float = 0.1

    def __post_init__(self) -> None:
        validate(self)
        if self.width % 4:
            raise InputError(f"check.width={self.width}: must be a multiple of 4, two neurons for each step")
        self.mu = real("check.mu", self.mu, 1e-4)

    def measure(self) -> Finding:
        N, root = self.width, 2 * self.mu**0.5
        z_N = np.linspace(-RADIUS, RADIUS, POINTS)
        x_N = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, POINTS)])
        p_N = sigmoid(z_N)
        found = {
            "variance": N / 4 * worst(lambda z: sigmoid(-np.abs(z)) * sigmoid(np.abs(z)), z_N, 0.25, N // 4),
            "probability": N / 2 * worst(sigmoid, z_N, 1.0, N // 2),
            "step_size": N / 2 * worst(lambda x: root / (root + np.sqrt(x)), x_N, 1.0, N // 2),
        }
        # All examples where the error is largest: in Euclidean norm sqrt(n) times as much.
        euclidean = self.context**0.5 * found["probability"]
        control = N / 2 * worst(sigmoid, z_N, 1.0, N // 8)
        return finding(
            [
                tried(**found)
                .means(
                    variance="largest error of p (1 - p), over 4/N",
                    probability="largest error of p, over 2/N",
                    step_size="largest error of the step size, over 2/N",
                )
                .at_most(1.0 + 1e-6, "eqs. (C.6), (C.16) and (C.20), in the largest entry"),
                tried(neurons_off=neurons_off(p_N, N // 2))
                .means("largest difference of the staircase by neurons from the staircase by levels")
                .at_most(1e-9, "rounding of ramps of slope 1e6 away from them", otherwise="undecided"),
                exact(euclidean=euclidean, examples=self.context)
                .means(
                    euclidean="Euclidean norm of the errors of p at the worst z for all examples, over 2/N",
                    examples="number of examples",
                )
                .compared_by("neurons_off", "the staircase by neurons"),
            ],
            Control(
                "the error of p over 2/N with a fourth of the levels",
                control,
                control > 1 + 1e-6,
            ),
            remarks=REMARKS,
        )


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -z))


def worst(function: Function, z_N: np.ndarray, span: float, levels: int) -> float:
    """Largest error of a staircase of so many levels of [0, span]: two neurons for each step, and p (1 - p)
    has as many steps down as up."""
    value_N = function(z_N)
    return float(np.abs(value_N - staircase(value_N, span, levels)).max())


def staircase(value_N: np.ndarray, span: float, levels: int) -> np.ndarray:
    """Return the middle of the level that each value lies in."""
    level_N = np.clip(np.floor(value_N * levels / span), 0, levels - 1)
    return (level_N + 0.5) * span / levels


def neurons_off(p_N: np.ndarray, levels: int) -> float:
    """Compare the staircase of p, as a function of p, with a sum of ReLU neurons, away from its ramps."""
    jumps_J = np.arange(1, levels) / levels
    at_NJ = p_N[:, None] - jumps_J
    ramps_NJ = (np.maximum(at_NJ + STEEP, 0) - np.maximum(at_NJ, 0)) / STEEP
    by_neurons_N = 0.5 / levels + ramps_NJ.sum(1) / levels
    away_N = (np.abs(at_NJ) > 2 * STEEP).all(1)
    return float(np.abs(by_neurons_N - staircase(p_N, 1.0, levels))[away_N].max())
