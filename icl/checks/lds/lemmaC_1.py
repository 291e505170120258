"""lds, Lemma C.1: (A, c) is observable with probability one under Assumption 3.2.

O = [c^T; c^T A; ...; c^T A^(d-1)] has rank d: its smallest singular value over its largest, in all drawn
systems of every setting, against what rounding makes of an exact zero. O's rows are powers of A, so the ratio
falls fast with d; Popov, Belevitch and Hautus's test, |(A - v I; c^T)| of full rank at every eigenvalue v,
says the same with a far better condition and is measured beside it. That the systems are section 5's and
appendix B.6's is checked by LAPACK's of the same stream.

Q systems, D states.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks.lds.support.observability import (
    complex_systems,
    hautus_ratio,
    observability,
    rank_ratio,
    systems_off,
)
from icl.checks.lds.support.sequences import law_of
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import fits_in_memory, integer, validate
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.tasks.dynamical_system import SETTINGS
from icl.theory.quadratic import EPSILON

SOURCE = "rounding of a zero singular value: 2^-52 d times the largest one"
REMARKS = [
    "In setting (a), c = (1, ..., 1) is not drawn from a density, as Assumption 3.2 requires. Appendix "
    "E.1 covers this case: distinct eigenvalues suffice, because O is then a Vandermonde matrix.",
    "Observability with probability one does not mean a well-conditioned O: its singular values span many "
    "orders of magnitude already at d = 5, so that the states cannot be estimated from d observations in "
    "practice.",
]


@dataclass(eq=False)
class LemmaC1:
    """Settings: dim, drawn systems of each setting (`samples`), seed; setting null is all four."""

    reference = "Lemma C.1; Assumptions 3.1 and 3.2, eq. (5); Appendix E.1"
    claim = (
        "A system (A, c) drawn under Assumption 3.2 is observable with probability one: the observability "
        "matrix has rank d."
    )

    setting: str | None = None
    dim: int = integer(5, 1, 8, "O's smallest singular value is lost in rounding")
    seed: int = integer(0, 0)
    samples: int = 4000

    def __post_init__(self) -> None:
        validate(self)
        settings = SETTINGS if self.setting is None else (self.setting,)
        self.laws = {name: law_of(name, 1, 3, self.dim, self.seed) for name in settings}
        fits_in_memory(self.samples, 1, self.dim**3)

    def measure(self) -> Finding:
        ratios, hautus, off = {}, {}, {}
        for name, law in self.laws.items():
            drawn = law.systems([generator(self.seed, "check")], self.samples)
            A_QDD, c_QD = drawn.A_RBDD[0], drawn.c_RBD[0]
            ratios[name] = float(rank_ratio(observability(A_QDD, c_QD)).min())
            hautus[name] = float(hautus_ratio(A_QDD, c_QD).min())
            off[name] = systems_off(name, generator(self.seed, "check"), A_QDD, c_QD)
        A_QDD, c_QD = complex_systems(generator(self.seed, "check", 1), self.samples, self.dim)
        of_complex = rank_ratio(observability(A_QDD, c_QD)), hautus_ratio(A_QDD, c_QD)
        is_complex_Q = torch.linalg.eigvals(A_QDD).imag.abs().amax(1) > 0
        zero = self.dim * EPSILON
        ranks = tried(least_ratio=min(ratios.values()), least_hautus=min(hautus.values())).means(
            least_ratio="least ratio of the smallest to the largest singular value of O, over all systems",
            least_hautus="least such ratio of [A - v I; c^T] over all systems and eigenvalues v",
        )
        return finding(
            [
                ranks.above(zero, SOURCE, otherwise="undecided"),
                tried(
                    least_ratio_complex=float(of_complex[0].min()),
                    least_hautus_complex=float(of_complex[1].min()),
                )
                .means(
                    least_ratio_complex="least ratio of singular values of O where eigenvalues are complex",
                    least_hautus_complex="least ratio of singular values of [A - v I; c^T] of these systems",
                )
                .above(zero, SOURCE, otherwise="undecided"),
                exact(share_complex=float(is_complex_Q.double().mean())).means(
                    "share of these systems that have complex eigenvalues"
                ),
                tried(systems_off=max(off.values()))
                .means("largest difference of the drawn systems from LAPACK's, over its rounding error")
                .at_most(1.0, "rounding of the LAPACK routines"),
                tried(least_ratio_by_setting=ratios, least_hautus_by_setting=hautus).means(
                    least_ratio_by_setting="least ratio of singular values of O, by setting",
                    least_hautus_by_setting="least ratio of singular values of [A - v I; c^T], by setting",
                ),
                exact(systems=self.samples).means("number of drawn systems of each setting"),
            ],
            self._control(zero),
            notes=[
                "Full rank of every drawn system is evidence and not a proof, because a null set is "
                "never drawn."
            ],
            remarks=REMARKS,
        )

    def _control(self, zero: float) -> Control:
        """Return the control: the same systems with a repeated eigenvalue, or at d = 1 with c = 0."""
        law = next(iter(self.laws.values()))
        drawn = law.systems([generator(self.seed, "control")], 1000)
        v_QD, c_QD = torch.linalg.eigvals(drawn.A_RBDD[0]).real, drawn.c_RBD[0]
        if self.dim == 1:
            ratio_Q, text = rank_ratio(observability(drawn.A_RBDD[0], 0 * c_QD)), "c = 0"
        else:
            v_QD[:, 1] = v_QD[:, 0]
            ratio_Q, text = rank_ratio(observability(torch.diag_embed(v_QD), c_QD)), "a repeated eigenvalue"
        largest = float(ratio_Q.max())
        return Control(f"the largest ratio over 1000 systems with {text}", largest, largest <= zero)
