"""lds, Lemma D.3: moments of order 2, 4 and 6 of the observations vanish where the indices' sum is odd.

Given the system a moment is a sum over pairings of products of C_ij (Isserlis, written out here); its mean
over systems is exact in settings (a) and (b), by Gauss rules, and an average over drawn systems in all four,
of sequences scaled to mean square 1.

Q systems, T observations, K index tuples.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.lds.support.isserlis import conditional, largest_share, odd_tuples
from icl.checks.lds.support.population import covariances_of, scale_to_mean_square_one
from icl.checks.lds.support.sequences import Sequences
from icl.checks.numbers import Numbers, exact, finding, tried
from icl.checks.sequential import Comparison, compare
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.tasks import DynamicalSystemLaw
from icl.theory.dynamical_system import covariances_of_independent_modes
from icl.theory.quadratic import EPSILON

ORDERS = (2, 4, 6)
TUPLES = 24  # of each order, drawn at random among those of odd sum


@dataclass(eq=False)
class LemmaD3(Sequences):
    """Settings: setting, length T, dim, seed, samples (drawn systems)."""

    reference = "Lemma D.3; Assumption 3.2"
    claim = (
        "The moments of the observations of order 2, 4 and 6 are zero where the sum of the indices is "
        "odd: E[y_i y_j] = 0 for odd i + j, and likewise for four and six indices."
    )

    samples: int = integer(2000, 100, 10**8)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law, self.violated = self.law_at(1), self.law_at(1, spectrum="positive")

    def measure(self) -> Finding:
        rng = generator(self.seed, "task", 1)
        tuples = {order: odd_tuples(rng, self.law.length, order, TUPLES) for order in ORDERS}
        control = self._compare(self.violated, tuples, "control", self.samples // 8)
        return finding(
            [
                self._exact(tuples) if self.law.has_independent_modes else exact(),
                self._compare(self.law, tuples, "eval", self.samples).numbers(
                    "sampled", "0, the stated moment,"
                ),
            ],
            Control(
                "the deviation in standard errors for eigenvalues that are uniform on [0, 1]",
                control.z,
                control.verdict == "fails",
            ),
            notes=[f"For each order, {TUPLES} index tuples with an odd sum are drawn at random."],
            remarks=[
                "The proof needs only that A and -A have the same law. Therefore the moments also vanish "
                "given c and given any even function of A, without the other assumptions of the lemma.",
            ],
        )

    def _exact(self, tuples: dict[int, Tensor]) -> Numbers:
        covariances = covariances_of_independent_modes(**self.law.mode_arguments())
        shares = {f"exact_order_{order}": largest_share(covariances, K) for order, K in tuples.items()}
        source = "rounding: 64 * 2^-52, relative to the terms, negative quadrature weights included"
        meanings = {
            f"exact_order_{order}": f"largest moment of order {order} with an odd index sum, relative to "
            "its terms"
            for order in tuples
        }
        return tried(**shares).means(**meanings).at_most(64 * EPSILON, source)

    def _compare(
        self, law: DynamicalSystemLaw, tuples: dict[int, Tensor], role: str, systems: int
    ) -> Comparison:
        """Compare 1 + moments of sequences of mean square 1 with 1."""
        step = itertools.count(1)

        def draw(count: int) -> Tensor:
            drawn_QTT = covariances_of(law, generator(self.seed, role, next(step)), count)
            C_QTT = scale_to_mean_square_one(drawn_QTT)
            return 1 + torch.cat([conditional(C_QTT, index_KO) for index_KO in tuples.values()], 1)

        return compare(draw, torch.ones(len(ORDERS) * TUPLES).double(), 500, systems, "systems drawn")
