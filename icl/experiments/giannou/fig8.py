"""Figure 8 of giannou: the losses of Figure 2, without a mask, for several condition numbers and noises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.errors import InputError, real
from icl.experiments.giannou.regression import (
    KEY,
    RegressionSize,
    baselines,
    laws,
    losses,
    runs_of,
    train_by_depth,
)
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class Fig8:
    """records: for every law its runs, `losses_LAW` and `baselines_LAW`."""

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
        lr: float | None = None,
        grown: bool = False,
        starts: int = 1,
        tilted: bool = False,
    ) -> None:
        self.size = RegressionSize(
            dim, context, layers, seeds, steps, prompts, lr=lr, grown=grown, starts=starts, tilted=tilted
        )
        self.laws = laws(numbers("conditions", conditions, 1), numbers("noises", noises, 0))

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            runs = train_by_depth(runner, self.size, law, False)
            known = baselines(runner, self.size, law, self.size.depths, [False])
            compared = losses(runner, self.size, law, runs, known)
            found |= runs_of(runs) | {f"baselines_{law.name}": known, f"losses_{law.name}": compared}
        return found


def numbers(name: str, values: Sequence[float], low: float) -> list[float]:
    listed = isinstance(values, list | tuple) and len(values) > 0
    if not listed or len(set(values)) < len(values):
        raise InputError(f"{KEY}.{name}={values}: must be a list of different numbers, at least one")
    return [real(f"{KEY}.{name}", value, low) for value in values]
