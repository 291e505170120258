"""lu: the error on the pretraining tasks without ridge, simulated at finite d, against its limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icl.checks.lu.support.extrapolation import SimulatedSettings, compared
from icl.checks.verdict import Finding

CONTROL = "standard errors from the formula at half the examples, alpha / 2"


@dataclass(eq=False)
class RidgelessIdg(SimulatedSettings):
    """Settings: of SimulatedSettings."""

    reference = "lu, Figure 1; formula of the published code"
    claim = "As d grows, the error on the pretraining tasks tends to the ridgeless formula for e_IDG."

    def measure(self) -> Finding:
        other = replace(self.limit, alpha=self.alpha / 2).idg
        return compared(self.means(old_tasks=True), self.limit.idg, CONTROL, other)
