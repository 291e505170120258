"""lu: errors after pretraining at finite d against their limits, on new and old tasks, without and with a
ridge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb, fmpq

from icl.checks.lu.sizes import LONG, MAX_DIM, ORDER, Means, Ratios, compare, means_of, require_examples
from icl.checks.statement import UNREFUTED, Measured, Sample, setting
from icl.errors import InputError, rising
from icl.models.lu.finite import FiniteRisk, TaskMoments
from icl.models.lu.pretraining import Pretraining
from icl.theory.lu.limits import Limit, plotted
from icl.theory.rationals import rational

NEAR = 0.1  # of tau = 1, where the error diverges and no polynomial in 1/d describes it


@dataclass
class RidgelessIcl(Ratios):
    """n = tau d^2 prompts; dimensions at which pretraining is simulated, and `draws` at the largest."""

    tau: float = setting(0.5, 1e-4, 20.0, most=100.0, beyond=LONG)
    dims: Sequence[int] = (12, 16, 24, 32, 48)
    ridge: float = setting(0.1, 1e-6, 10.0)

    where = "Figures 1 and 2, and the panel with a ridge; formulas of the published code"
    title = "New and old tasks: the limit of many covariates"
    claim = (
        "As d grows, the errors on new and on pretraining tasks tend to the published formulas for e_ICL and "
        "e_IDG without a ridge; e_ICL also with one, whose effective value is the only root of its equation, "
        "and with infinitely many prompts."
    )
    quote = "formula of the published code; the paper's text was not at hand"
    formula = r"\lim_{d \to \infty} e_{\text{ICL}} = e_{\text{ICL}}(\alpha, \kappa, \tau, \rho, \lambda)"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dims = rising("check.dims", self.dims, 2, MAX_DIM, ORDER + 1)
        if abs(self.tau - 1) < NEAR:
            raise InputError(
                f"check.tau={self.tau}: must be {NEAR:g} away from 1; nearer, errors at these d say nothing"
            )

    def expected(self) -> str:
        """Return UNREFUTED at other laws: errors vary more, or the control is weak."""
        return super().expected() if self.at_default else UNREFUTED

    @property
    def ratios(self) -> tuple[float, float, float, float]:
        return self.alpha, self.kappa, self.tau, self.rho

    def measure(self, m: Measured) -> None:
        limit, half = Limit.at(*self.ratios), Limit.at(self.alpha / 2, *self.ratios[1:])
        of_ridge, of_half = (at.errors(at.effective_ridge(rational(self.ridge)))[0] for at in (limit, half))
        sizes = {d: Pretraining.at(d, *self.ratios) for d in self.dims}

        require_examples(sizes[self.dims[-1]])

        def formulas(ratios: tuple[float, float, float, float]) -> np.ndarray:
            return np.array([*plotted(*ratios), plotted(*ratios, self.ridge)[0]])

        def once(d: int, rng: np.random.Generator) -> list[float]:
            (new, old), (with_ridge, _) = sizes[d].errors_by_ridge(rng, [0.0, self.ridge])
            return [new, old, with_ridge]

        means = means_of(self.dims, self.draws, once, self.seed)
        moves = np.array([formulas(sizes[d].ratios) - formulas(self.ratios) for d in self.dims]).T
        pairs = (limit.icl, half.icl), (limit.idg, half.idg), (of_ridge, of_half)
        rows = list(zip(("", "old_", "ridge_"), means, moves, pairs, strict=True))
        rows.append(self._endless(limit, half))
        for row, errors, moved, (formula, wrong) in rows:
            about = "the formula at half the examples, less the extrapolated error"
            left = compare(m, f"{row}difference", errors, moved, formula, wrong, about)
            if not row:
                m.number("formula", formula, "limit of the error on new tasks, by the formula")
                extrapolated = Sample(float(formula) + left.mean, left.stderr)
                m.number("extrapolated", extrapolated, "error on new tasks extrapolated to infinitely many d")

    def _endless(self, limit: Limit, half: Limit) -> tuple[str, Means, Any, tuple[arb, arb]]:
        """Return errors of the best weights for tasks that are drawn, those of infinitely many prompts."""
        dims = [2 * d for d in self.dims]
        sizes = {d: Pretraining.at(d, self.alpha, self.kappa, 1.0, self.rho) for d in dims}
        asked = plotted(self.alpha, self.kappa, np.inf, self.rho)[0]
        moves = [plotted(*sizes[d].ratios[:2], np.inf, self.rho)[0] - asked for d in dims]

        def once(d: int, rng: np.random.Generator) -> list[float]:
            tasks = TaskMoments.of(sizes[d].draw_tasks(rng, sizes[d].tasks or 1), self.rho)
            best_DH = FiniteRisk(tasks, sizes[d].examples).best()
            return [FiniteRisk(TaskMoments.new(d, self.rho), sizes[d].examples).risk(best_DH)]

        [means] = means_of(dims, self.draws, once, self.seed)
        return "endless_", means, moves, (replace(limit, fewer=fmpq(0)).icl, replace(half, fewer=fmpq(0)).icl)
