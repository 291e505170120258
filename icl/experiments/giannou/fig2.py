"""Figure 2 of giannou: test loss by layers of LSA, and by steps of Newton's iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.experiments.giannou.regression import (
    PUBLISHED_LARGEST,
    Law,
    Size,
    baselines,
    losses,
    started,
    trained,
)
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class Fig2:
    """records: a run for every depth, masked and not, from random weights and from the family's best point,
    and `losses`, `baselines`."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        started_steps: int,
        prompts: int,
    ) -> None:
        self.size = Size(dim, context, layers, seeds, steps, prompts, started_steps)
        self.law = Law(1.0, PUBLISHED_LARGEST, 0.0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        size, law, depths = self.size, self.law, self.size.depths
        known = baselines(runner, size, law, depths)
        runs: dict[str, RunRecord] = {}
        for mask in (False, True):
            runs |= trained(runner, size, law, mask, depths)
            runs |= started(runner, size, law, mask, known, depths)
        return {**runs, "losses": losses(runner, size, law, runs, known), "baselines": known}
