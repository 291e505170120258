"""lds, Lemma D.3: moments of order 2, 4 and 6 of the observations vanish where the indices' sum is odd.

Given the system a moment is a sum over pairings of products of C_ij (Isserlis, written out here); its mean
over systems is exact in settings (a) and (b), by Gauss rules, and an average over drawn systems in all four,
of sequences scaled to mean square 1.

Q systems, T observations, K index tuples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.population import covariances_of, of_mean_square_one
from icl.checks.lds.support.sequences import Sequences
from icl.checks.sequential import KINDS, Comparison, compare
from icl.checks.verdict import Condition, Control, Finding, at_most, combine
from icl.errors import whole
from icl.random import generator
from icl.tasks import DynamicalSystemLaw
from icl.theory.dynamical_system import Covariances, covariances_of_independent_modes
from icl.theory.quadratic import EPSILON

ORDERS = (2, 4, 6)
TUPLES = 24  # of each order, drawn at random among those of odd sum


@dataclass(eq=False)
class LemmaD3(Sequences):
    """Settings: setting, length T, dim, seed, samples (drawn systems)."""

    reference = "Lemma D.3; Assumption 3.2"
    claim = "E[y_i y_j], E[y_i y_j y_k y_l] and the sixth moments are 0 where the sum of the indices is odd."

    samples: int = 2000

    def __post_init__(self) -> None:
        self.law, self.violated = self.law_at(1), self.law_at(1, spectrum="positive")
        whole("check.samples", self.samples, 100, 10**8)

    def measure(self) -> Finding:
        rng = generator(self.seed, "task", 1)
        tuples = {order: _odd_tuples(rng, self.law.length, order) for order in ORDERS}
        measured: dict[str, object] = {}
        conditions: list[Condition] = []
        if self.law.has_independent_modes:
            exact = covariances_of_independent_modes(**self.law.mode_arguments())
            for order, index_KO in tuples.items():
                name = f"exact_order_{order}"
                value = _largest_share(exact, index_KO)
                measured[name] = value
                source = "rounding: 64 * 2^-52, shares of the terms' sizes, the rules' weights of both signs"
                conditions.append(at_most(name, value, 64 * EPSILON, source))
        sampled = self._sampled(self.law, tuples, "eval", self.samples)
        control = self._sampled(self.violated, tuples, "control", self.samples // 8)
        measured |= sampled.measured("sampled")
        verdict, bound = combine([*conditions, sampled.condition("sampled")])
        return Finding(
            verdict,
            measured,
            bound,
            Control(
                "eigenvalues uniform on [0, 1]: largest deviation from 0, in standard errors",
                control.z,
                control.verdict == "fails",
            ),
            [f"{TUPLES} index tuples of each order, drawn at random among those of odd sum."],
            [
                "Only the symmetry of A is used: A and -A of the same law. So the moments vanish given |c|, "
                "given any even function of A, and without any of the lemma's other assumptions.",
            ],
            kinds={"exact_order_*": "tried", **KINDS},
        )

    def _sampled(
        self, law: DynamicalSystemLaw, tuples: dict[int, Tensor], role: str, systems: int
    ) -> Comparison:
        """1 + moments of sequences of mean square 1: all have mean 1."""
        step = itertools.count(1)

        def draw(count: int) -> Tensor:
            drawn_QTT = covariances_of(law, generator(self.seed, role, next(step)), count)
            C_QTT = of_mean_square_one(drawn_QTT)
            return 1 + torch.cat([conditional(C_QTT, index_KO) for index_KO in tuples.values()], 1)

        return compare(draw, torch.ones(len(ORDERS) * TUPLES).double(), 500, systems, "systems drawn")


def conditional(C_QTT: Tensor, index_KO: Tensor) -> Tensor:
    """(Q, K): E[product of y at each tuple of times] given C, by its pairings."""
    total = C_QTT.new_zeros(len(C_QTT), len(index_KO))
    for pairing in pairings(list(range(index_KO.shape[1]))):
        term = torch.ones_like(total)
        for first, second in pairing:
            term = term * C_QTT[:, index_KO[:, first], index_KO[:, second]]
        total = total + term
    return total


def pairings(places: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways of splitting the places into pairs: 1, 3 and 15 of them."""
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    for partner in rest:
        for others in pairings([place for place in rest if place != partner]):
            yield [(first, partner), *others]


def _odd_tuples(rng: np.random.Generator, T: int, order: int) -> Tensor:
    """(K, order) places 0 .. T - 1 of the times 1 .. T, the times' sum odd."""
    index_KO = rng.integers(T, size=(TUPLES, order))
    even_K = (index_KO + 1).sum(1) % 2 == 0
    index_KO[even_K, 0] += np.where(index_KO[even_K, 0] < T - 1, 1, -1)
    return torch.from_numpy(index_KO)


def _largest_share(exact: Covariances, index_KO: Tensor) -> float:
    """The largest mean as a share of what its terms would add up to with all signs equal."""
    values_QK = conditional(exact.covariance_QTT, index_KO)
    sizes_QK = conditional(exact.covariance_QTT.abs(), index_KO)
    scale_K = exact.weight_Q.abs() @ sizes_QK
    return float(((exact.weight_Q @ values_QK).abs() / scale_K).max())
