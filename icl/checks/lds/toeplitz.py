"""lds, eq. (15): the normalised Gram matrix of AR(s) tokens is nearly Toeplitz.

delta(T)^2 = E|G - Toep(G)|_F^2 / E|G|_F^2, Toep(G) the mean along each diagonal, the nearest Toeplitz matrix.
Neighbours on a diagonal differ by two products over N: N (G_{a+1,b+1} - G_ab) = y_{N+a+1} y_{N+b+1} -
y_{a+1} y_{b+1}, so delta falls like 1/N as long as the ends are no larger than the rest: at T, 2T and 4T.
delta^2 is of degree 2 in the covariances: exact in settings (a), (b), an average in (c), (d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.population import CONFIDENCE, Population, enough, mean_over
from icl.checks.lds.support.sequences import Windows
from icl.checks.settings import in_range
from icl.checks.verdict import Bound, Control, Finding, decide
from icl.tasks import DynamicalSystemLaw
from icl.theory.dynamical_system import Covariances, covariance_of_modes, gram_moments, pairs

MAX_LENGTH, MAX_DIM = 50, 20
GROWTH = 1.2  # of the control's one state: unstable
FASTER = 0.5  # ends that do not grow give 1/N, products of independent errors only 1/sqrt(N)
SOURCE = (
    "between 1/N and no decay: the exponent must exceed 1/2, which a Gram matrix with independent errors of "
    "order 1/sqrt(N) in each entry would have"
)


@dataclass(eq=False)
class Toeplitz(Windows):
    """Settings: setting, window s, the shortest length T, dim, seed, samples (drawn systems in c and d)."""

    reference = "Section 5, eq. (15)"
    claim = "The normalised Gram matrix of AR(s) tokens tends to a Toeplitz matrix as T grows."

    samples: int = 2000

    def __post_init__(self) -> None:
        in_range("check.length", self.length, 1, MAX_LENGTH, "sequences four times as long fill the memory")
        in_range("check.dim", self.dim, 1, MAX_DIM, "systems of long sequences take minutes")
        super().__post_init__()
        enough(self.samples, 4 * self.length)
        self.lengths = [self.length, 2 * self.length, 4 * self.length]
        self.laws = [self.law_at(self.window, T) for T in self.lengths]

    def measure(self) -> Finding:
        distances, errors = zip(*(self._distance(law) for law in self.laws), strict=True)
        exponents = self._exponents(distances)
        relative = [error / distance for error, distance in zip(errors, distances, strict=True)]
        spread = CONFIDENCE * float(np.hypot(relative[0], relative[-1])) / np.log(self._ratio(0, -1))
        slowest = float(-np.log(distances[-1] / distances[0]) / np.log(self._ratio(0, -1)))
        control = self._control()
        return Finding(
            decide(-slowest, -FASTER, spread),
            {
                "exponent": slowest,
                "exponent_error": spread,
                "exponent_stderr": spread / CONFIDENCE,
                "exponents_between_lengths": exponents,
                "lengths": self.lengths,
                "distances": list(distances),
                "distances_stderr": list(errors),
            },
            Bound(FASTER, SOURCE, "exponent", ">"),
            Control(
                f"exponent for one unstable state, |v| = {GROWTH}: its last products outweigh all others",
                control,
                control < FASTER,
            ),
            remarks=[
                "The exponent is that of the ends over the sum: two products of about N on every diagonal.",
                "(15)'s last column is minus the gradient of L_AR(s) at 0, in (60) likewise; see lds/pcg.",
            ],
            kinds={"*": "exact" if max(errors) == 0 else "sampled", "lengths": "exact"},
        )

    def _ratio(self, first: int, last: int) -> float:
        return self.laws[last].context / self.laws[first].context

    def _exponents(self, distances: tuple[float, ...]) -> list[float]:
        return [
            float(-np.log(distances[i + 1] / distances[i]) / np.log(self._ratio(i, i + 1))) for i in range(2)
        ]

    def _distance(self, law: DynamicalSystemLaw) -> tuple[float, float]:
        population = Population(law, self.samples, self.seed)
        seconds = [gram_moments(part, self.window)[1] for part in population.parts]
        value = _relative_distance(torch.stack(seconds).mean(0), self.window)
        if len(seconds) == 1:
            return value, 0.0
        total, count = torch.stack(seconds).sum(0), len(seconds)
        without = [_relative_distance((total - one) / (count - 1), self.window) for one in seconds]
        return value, float(np.std(without) * (count - 1) ** 0.5)

    def _control(self) -> float:
        distances = []
        for law in self.laws:
            value = torch.tensor([GROWTH], dtype=torch.float64)
            C = covariance_of_modes(value, law.process_noise, law.initial_variance, law.length)
            both: Covariances = mean_over(C)
            distances.append(_relative_distance(gram_moments(both, self.window)[1], self.window))
        return float(-np.log(distances[-1] / distances[0]) / np.log(self._ratio(0, -1)))


def _relative_distance(second_SS: Tensor, window: int) -> float:
    """From E[G_ab G_ce] over pairs: sqrt(E|G - Toep(G)|^2 / E|G|^2)."""
    a_S, b_S = pairs(window)
    lag_S = b_S - a_S
    twice_S = torch.where(lag_S == 0, 1.0, 2.0).double()  # entries off the diagonal stand in G twice
    same_SS = lag_S[:, None] == lag_S
    mean_SS = same_SS / same_SS.sum(1, keepdim=True)
    left_SS = torch.eye(len(lag_S), dtype=torch.float64) - mean_SS
    distance = (twice_S * (left_SS @ second_SS @ left_SS.T).diagonal()).sum()
    return float((distance / (twice_S * second_SS.diagonal()).sum()).sqrt())
