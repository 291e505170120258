"""Figure 9 of giannou: the losses of Figure 8 with LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.experiments.giannou.fig8 import numbers
from icl.experiments.giannou.regression import Size, baselines, laws, layernorm
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class Fig9:
    """records: for every law its runs by depth, `losses_LAW_layernorm` and `baselines_LAW`."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        prompts: int,
        conditions: Sequence[float],
        noises: Sequence[float],
    ) -> None:
        self.size = Size(dim, context, layers, seeds, steps, prompts)
        self.laws = laws(numbers("conditions", conditions, 1), numbers("noises", noises, 0))

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            found |= layernorm(runner, self.size, law)
            found[f"baselines_{law.name}"] = baselines(runner, self.size, law, self.size.depths, [])
        return found
