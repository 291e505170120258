"""lu: from one pretraining task a dimension on (kappa = 1), attention that is pretrained long generalizes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq

from icl.checks.lu.sizes import MAX_RATIO, Simulated
from icl.checks.statement import UNREFUTED, Measured, Sample, setting
from icl.errors import InputError, reals
from icl.models.lu.pretraining import Pretraining
from icl.random import generator
from icl.theory.blurred import Undecided
from icl.theory.lu.finite import distance_from_plane, gap_of_best
from icl.theory.lu.limits import gap_of_long_prompts
from icl.theory.rationals import rational

NEW = 2000  # tasks, whose distance from the nearest old one is averaged
LONG = 10**8  # alpha of prompts that are long


@dataclass
class Transition(Simulated):
    """Values of kappa, noise rho; dimension at which the same is solved at finite d."""

    kappas: Sequence[float] = (0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0)
    dim: int = setting(100, 2, 100, most=300, beyond="a solve takes minutes")

    where, title = "Figure 4", "The transition in task diversity"
    claim = "As tau, then alpha, grow, e_ICL - e_IDG tends to max(1 - kappa, 0): a transition at kappa = 1."
    quote = "a figure of the published code; the paper's text was not at hand"
    formula = (
        r"\lim_{\alpha \to \infty} \lim_{\tau \to \infty} (e_{\text{ICL}} - e_{\text{IDG}}) "
        r"= \max(1 - \kappa, 0)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kappas = reals("check.kappas", self.kappas, None, 0, open_low=True)
        if max(self.kappas) > MAX_RATIO / self.dim or min(self.kappas) < 1 / MAX_RATIO:
            span = f"from {1 / MAX_RATIO:g} to {MAX_RATIO / self.dim:g}"
            raise InputError(
                f"check.kappas={self.kappas}: must be {span}; beyond, tasks do not fit in memory"
            )

    def expected(self) -> str:
        """Return UNREFUTED where all kappas are 1 or more, or the dimensions few: no transition is seen."""
        return "holds" if min(self.kappas) < 1 and self.dim >= 50 else UNREFUTED

    def measure(self, m: Measured) -> None:
        kappas = [rational(kappa) for kappa in self.kappas]
        limits = [gap_of_long_prompts(kappa) for kappa in kappas]
        stated = [max(1 - kappa, fmpq(0)) for kappa in kappas]
        off = [gap - low for gap, low in zip(limits, stated, strict=True)]
        m.zero("difference", off, "limit of e_ICL - e_IDG less max(1 - kappa, 0), by kappa")
        moved = [gap - max(1 - 2 * kappa, fmpq(0)) for gap, kappa in zip(limits, kappas, strict=True)]
        about = "the same for a transition at kappa = 1/2, the largest"
        m.control(about, max(moved, key=abs), of="difference")

        drawn = [self._tasks(i) for i in range(len(kappas))]  # of pretraining, and new ones
        tasks = [[[rational(x) for x in w] for w in w_TD.tolist()] for w_TD, _ in drawn]
        rho = rational(self.rho)
        try:
            finite = [gap_of_best(each, self.dim, LONG * self.dim, rho) for each in tasks]
        except ZeroDivisionError:
            raise Undecided("without noise the features of one task are dependent (check.rho)") from None
        planes = [distance_from_plane(each, self.dim) for each in tasks]
        near = fmpq(1, 10 * self.dim)
        misses = [abs(gap - plane) for gap, plane in zip(finite, planes, strict=True)]
        if not all(miss < near for miss in misses):
            raise Undecided("at this d the best weights are not yet near the limit: check.dim takes more")
        about = "e_ICL - e_IDG of the best weights at d, off the distance from the tasks' plane, by kappa"
        m.below("finite_error", misses, near, about)
        spans = [max(1 - fmpq(len(each), self.dim), fmpq(0)) for each in tasks]
        linear = max((abs(gap - span) for gap, span in zip(finite, spans, strict=True)), key=float)
        about = "the same from the span of the tasks, less a tenth of 1/d"
        m.control(about, linear - near, of="finite_error")
        m.number("finite_gaps", finite, "e_ICL - e_IDG of the best weights at d, by kappa")

        # all have |w|^2 = d
        nearest = [Sample.of(2 - 2 * (new_ND @ w_TD.T).max(1) / self.dim) for w_TD, new_ND in drawn]
        m.number("dmmse_gaps", nearest, "e_ICL - e_IDG of dMMSE as alpha grows, at d, by kappa")
        above = [Sample(gap.mean - float(low), gap.stderr) for gap, low in zip(nearest, stated, strict=True)]
        m.positive("dmmse_excess", above, "the same less max(1 - kappa, 0): dMMSE has no transition there")
        m.note("At finite d the best weights project on the plane through the tasks, their mean included.")
        m.note("As alpha grows dMMSE takes the nearest pretraining task; its difference tends to 2 with d.")

    def _tasks(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rng = generator(self.seed, "check", number)
        sizes = Pretraining.at(self.dim, 1.0, self.kappas[number], 1.0, self.rho)
        return sizes.draw_tasks(rng, sizes.tasks or 1), sizes.draw_tasks(rng, NEW)
