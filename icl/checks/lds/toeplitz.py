"""lds, eq. (15): the normalised Gram matrix of AR(s) tokens is nearly Toeplitz.

delta(T)^2 = E|G - Toep(G)|_F^2 / E|G|_F^2, Toep(G) the mean along each diagonal, the nearest Toeplitz matrix.
Neighbours on a diagonal differ by two products over N: N (G_{a+1,b+1} - G_ab) = y_{N+a+1} y_{N+b+1} -
y_{a+1} y_{b+1}, so delta falls like 1/N as long as the ends are no larger than the rest: at T, 2T and 4T.
delta^2 is of degree 2 in the covariances: exact in settings (a), (b), an average in (c), (d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.population import CONFIDENCE, Population, mean_over, require_systems
from icl.checks.lds.support.sequences import Windows
from icl.checks.numbers import exact, finding, of_kind, second
from icl.checks.sequential import mean_of
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding, Route
from icl.random import generator
from icl.tasks import DynamicalSystemLaw
from icl.theory.dynamical_system import covariance_of_modes, gram_moments, pairs

GROWTH = 1.2  # of the control's one state: unstable
DRAWN = 4000  # simulated sequences, a second route
FASTER = 0.5  # ends that do not grow give 1/N, products of independent errors only 1/sqrt(N)
SOURCE = "the exponent of a Gram matrix whose entries have independent errors of order 1/sqrt(N)"


@dataclass(eq=False)
class Toeplitz(Windows):
    """Settings: setting, window s, the shortest length T, dim, seed, samples (drawn systems in c and d)."""

    reference = "Section 5, eq. (15)"
    claim = "As T grows, the normalised Gram matrix of the AR(s) tokens converges to a Toeplitz matrix."

    length: int = integer(30, 1, 50, "sequences four times as long fill the memory")
    dim: int = integer(5, 1, 20, "systems of long sequences take minutes")
    samples: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_systems(self.samples, 4 * self.length)
        self.lengths = [self.length, 2 * self.length, 4 * self.length]
        self.laws = [self.law_at(self.window, T) for T in self.lengths]

    def measure(self) -> Finding:
        distances, errors = zip(*(self._distance(law) for law in self.laws), strict=True)
        relative = [error / distance for error, distance in zip(errors, distances, strict=True)]
        spread = CONFIDENCE * float(np.hypot(relative[0], relative[-1])) / np.log(self._ratio(0, -1))
        kind = "exact" if max(errors) == 0 else "sampled"
        control = self._control()
        again = self._on_sequences(distances) if kind == "exact" else dict.fromkeys(("exponent",))
        return finding(
            [
                of_kind(kind, exponent=self._exponent(distances, 0, -1))
                .means("exponent of the decay of the distance from Toeplitz in the number of tokens")
                .confirmed(exponent=again["exponent"])
                .above(FASTER, SOURCE, half_width=spread),
                of_kind(
                    kind,
                    exponent_error=spread,
                    exponent_stderr=spread / CONFIDENCE,
                    exponents_between_lengths=[self._exponent(distances, i, i + 1) for i in range(2)],
                    distances=list(distances),
                    distances_stderr=list(errors),
                )
                .means(
                    exponent_error="half-width of the 99.9 % interval of the exponent",
                    exponents_between_lengths="exponents between T and 2 T and between 2 T and 4 T",
                    distances="relative distance of the Gram matrix from Toeplitz at T, 2 T and 4 T",
                )
                .by_definition()
                .confirmed(**again),
                exact(lengths=self.lengths).means("sequence lengths T, 2 T and 4 T").by_definition(),
            ],
            Control(
                f"the exponent for one unstable state, |v| = {GROWTH}, where the last products dominate",
                control,
                control < FASTER,
            ),
            remarks=[
                "Neighbours on a diagonal differ by two of about N products, which gives the exponent 1.",
                "The last column of (15), and of (60), is minus the gradient of L_AR(s) at 0; see lds/pcg.",
            ],
        )

    def _exponent(self, distances: Sequence[float], first: int, last: int) -> float:
        return float(-np.log(distances[last] / distances[first]) / np.log(self._ratio(first, last)))

    def _ratio(self, first: int, last: int) -> float:
        return self.laws[last].context / self.laws[first].context

    def _distance(self, law: DynamicalSystemLaw) -> tuple[float, float]:
        population = Population(law, self.samples, self.seed)
        seconds = [gram_moments(part, self.window)[1] for part in population.parts]
        value = _relative_distance(torch.stack(seconds).mean(0), self.window)
        if len(seconds) == 1:
            return value, 0.0
        total, count = torch.stack(seconds).sum(0), len(seconds)
        without = [_relative_distance((total - one) / (count - 1), self.window) for one in seconds]
        return value, float(np.std(without) * (count - 1) ** 0.5)

    def _on_sequences(self, distances: Sequence[float]) -> dict[str, Route | None]:
        """Return the second routes of distances and exponents: from sequences that are simulated."""
        drawn = [_sampled_distance(law, generator(self.seed, "eval", i)) for i, law in enumerate(self.laws)]
        values, errors = zip(*drawn, strict=True)
        name = f"Monte Carlo on tokens, {DRAWN:,} sequences"
        pairs = [(0, -1), (0, 1), (1, 2)]
        found = [self._exponent(values, *pair) for pair in pairs]
        shares = [error / value for value, error in drawn]
        stderrs = [
            float(np.hypot(shares[first], shares[last]) / np.log(self._ratio(first, last)))
            for first, last in pairs
        ]
        first = [self._exponent(distances, *pair) for pair in pairs]
        return {
            "distances": second(name, list(distances), list(values), list(errors)),
            "exponent": second(name, first[0], found[0], stderrs[0]),
            "exponents_between_lengths": second(name, first[1:], found[1:], stderrs[1:]),
        }

    def _control(self) -> float:
        distances = []
        for law in self.laws:
            value = torch.tensor([GROWTH], dtype=torch.float64)
            C = covariance_of_modes(value, law.process_noise, law.initial_variance, law.length)
            distances.append(_relative_distance(gram_moments(mean_over(C), self.window)[1], self.window))
        return self._exponent(distances, 0, -1)


def _sampled_distance(law: DynamicalSystemLaw, rng: np.random.Generator) -> tuple[float, float]:
    """Return sqrt(E|G - Toep(G)|^2 / E|G|^2) over simulated sequences, and its standard error."""
    G_BPP = law.gram_prompts([rng], DRAWN).gram_RBPP[0]
    P = G_BPP.shape[-1]
    lag_PP = (torch.arange(P)[:, None] - torch.arange(P)).abs()
    means_BP = torch.stack([G_BPP[:, lag_PP == lag].mean(1) for lag in range(P)], 1)
    off_B = (G_BPP - means_BP[:, lag_PP]).square().sum((1, 2))
    all_B = G_BPP.square().sum((1, 2))
    share = float(off_B.mean() / all_B.mean())
    stderr = mean_of(off_B - share * all_B).stderr / float(all_B.mean())
    return share**0.5, stderr / 2 / share**0.5


def _relative_distance(second_SS: Tensor, window: int) -> float:
    """Return, from E[G_ab G_ce] over pairs, sqrt(E|G - Toep(G)|^2 / E|G|^2)."""
    a_S, b_S = pairs(window)
    lag_S = b_S - a_S
    twice_S = torch.where(lag_S == 0, 1.0, 2.0).double()  # entries off the diagonal stand in G twice
    same_SS = lag_S[:, None] == lag_S
    mean_SS = same_SS / same_SS.sum(1, keepdim=True)
    left_SS = torch.eye(len(lag_S), dtype=torch.float64) - mean_SS
    distance = (twice_S * (left_SS @ second_SS @ left_SS.T).diagonal()).sum()
    return float((distance / (twice_S * second_SS.diagonal()).sum()).sqrt())
