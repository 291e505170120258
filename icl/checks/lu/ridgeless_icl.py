"""lu: the error on new tasks after pretraining without ridge, simulated at finite d, against its limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icl.checks.lu.support.extrapolation import SimulatedSettings, compared
from icl.checks.verdict import Finding

CONTROL = "standard errors from the formula at half the examples, alpha / 2"


@dataclass(eq=False)
class RidgelessIcl(SimulatedSettings):
    """Settings: of SimulatedSettings."""

    reference = "lu, Figure 1; formula of the published code"
    claim = "As d grows, the error on new tasks tends to the ridgeless formula for e_ICL."

    def measure(self) -> Finding:
        other = replace(self.limit, alpha=self.alpha / 2).icl
        return compared(self.means(old_tasks=False), self.limit.icl, CONTROL, other)
