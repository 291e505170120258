"""Figure 6 of ahn: test loss against the number of examples N, three layers against three steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from icl.config.values import resolve_seeds
from icl.errors import real, whole
from icl.figures.ahn.fig3 import MAX_LAYERS
from icl.figures.ahn.losses import MEANS, MEDIANS, LossComparison, Losses
from icl.figures.claims import Claim
from icl.figures.figure import Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import note
from icl.figures.training import TrainingSettings, different
from icl.runs.record import RunRecord

SEED_STEP = 1000  # seed k at N examples is that of replica k * SEED_STEP + N, whatever else is trained


@dataclass(eq=False)
class Fig6(LossComparison):
    """`contexts_per_run` context lengths are one batched run. `lr`, `lr_below_5`, `steps`: of the training on
    plain prompts."""

    varied, letter, x_label, ceiling = "context", "N", "number of examples $N$", 8
    context: Sequence[int]
    seeds: Sequence[int]
    contexts_per_run: int
    lr: float
    lr_below_5: float
    draws: int = 0
    layers: int | None = None
    dim: int | None = None
    steps: int | None = None
    covariance: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.context = different("context", self.context, 1, SEED_STEP - 1)
        self.seeds = resolve_seeds(self.seeds, None)
        whole("figure.contexts_per_run", self.contexts_per_run, 1)
        self.lr = real("figure.lr", self.lr, 0, open_low=True)
        self.lr_below_5 = real("figure.lr_below_5", self.lr_below_5, 0, open_low=True)
        if self.layers is not None:
            whole("figure.layers", self.layers, 1, MAX_LAYERS)
        size = TrainingSettings(self.layers, self.dim, covariance=self.covariance)
        self.size = size.overrides()
        self.training = replace(size, steps=self.steps).overrides()

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for start in range(0, len(self.context), self.contexts_per_run):
            group = self.context[start : start + self.contexts_per_run]
            replicas = [(n, k) for n in group for k in self.seeds]
            task = {
                "seeds": [k * SEED_STEP + n for n, k in replicas],
                "task.context": [n for n, _ in replicas],
            }
            rates = {"optimizer.lr": [self.lr_below_5 if n < 5 else self.lr for n, _ in replicas]}
            plain = runner.train("ahn/fig6", task | rates | self.training)
            label = f"N{'_'.join(map(str, group))}"
            found |= self.compared(runner, "fig6", label, task | self.size, plain)
        return found

    def draw(self, panels: Panels, records: Records) -> None:
        super().draw(panels, records)
        note(panels["mean"], "OLS is 0 for $N \\geq d$", "lower left")

    def claims(self, records: Records) -> list[Claim]:
        losses = Losses(records, self.varied)
        values = losses.xs
        return [
            *(self.compare(losses, "mean", pair, values) for pair in MEANS),
            self.claim_near_best(losses, values),
            *(self.compare(losses, "median", pair, values) for pair in MEDIANS),
            self.claim_missed_tail(losses, values),
            self.claim_overstated_baseline(losses),
        ]
