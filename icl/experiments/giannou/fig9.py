"""Figure 9 of giannou: the losses of Figure 8 with LayerNorm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from icl.errors import whole
from icl.experiments.giannou.fig8 import Fig8
from icl.experiments.giannou.regression import KEY, baselines, layernorm
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class Fig9(Fig8):
    """records: for every law its runs by depth, or the one that grew through them, `losses_LAW_layernorm` and
    `baselines_LAW`. `steps`: where kappa is 1, the runs of Figure 2; else `conditioned_steps`, `grown`."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        conditioned_steps: int,
        prompts: int,
        conditions: Sequence[float],
        noises: Sequence[float],
        lr: float | None = None,
        grown: bool = False,
    ) -> None:
        super().__init__(dim, context, layers, seeds, steps, prompts, conditions, noises, lr=lr)
        steps = whole(f"{KEY}.conditioned_steps", conditioned_steps, 10)
        self.conditioned = dataclasses.replace(self.size, steps=steps, grown=grown)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            size = self.size if law.condition == 1 else self.conditioned
            found |= layernorm(runner, size, law)
            found[f"baselines_{law.name}"] = baselines(runner, self.size, law, self.size.depths, [])
        return found
