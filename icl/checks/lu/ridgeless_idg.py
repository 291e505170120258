"""lu: the error on the pretraining tasks without ridge, simulated at finite d, against its limit."""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.lu.ridgeless_icl import Pretrained
from icl.checks.lu.sizes import compare
from icl.checks.statement import Measured
from icl.theory.lu.limits import Limit


@dataclass
class RidgelessIdg(Pretrained):
    where = "Figure 1; formula of the published code"
    title = "Pretraining tasks: the limit without ridge"
    claim = "As d grows, the error on the pretraining tasks tends to the ridgeless formula for e_IDG."
    quote = "formula of the published code; the paper's text was not at hand"
    formula = r"\lim_{d \to \infty} e_{\text{IDG}} = e_{\text{IDG}}(\alpha, \kappa, \tau, \rho)"

    def measure(self, m: Measured) -> None:
        half = Limit.at(self.alpha / 2, *self.ratios[1:])
        control = "the formula at half the examples, less the extrapolated error"
        compare(m, "", *self.simulated(0.0, old_tasks=True), Limit.at(*self.ratios).idg, half.idg, control)
