"""Figure 9 of giannou: the losses of Figure 8 with LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping

from icl.experiments.giannou.fig8 import Fig8
from icl.experiments.giannou.regression import baselines, layernorm
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class Fig9(Fig8):
    """records: for every law its runs by depth, `losses_LAW_layernorm` and `baselines_LAW`."""

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            found |= layernorm(runner, self.size, law)
            found[f"baselines_{law.name}"] = baselines(runner, self.size, law, self.size.depths, [])
        return found
