"""Figure 7 of ahn: test loss against the number of layers L, or of steps, at N = 20."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icl.figures.ahn.fig3 import MAX_LAYERS
from icl.figures.ahn.losses import LEVEL, MEANS, MEDIANS, LossComparison, Losses
from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.runner import Runner
from icl.figures.training import TrainingSettings, different
from icl.runs.record import RunRecord


@dataclass(eq=False)
class Fig7(LossComparison):
    """All seeds of a depth are one run. `lr`, `steps`: of the training on plain prompts."""

    varied, letter, x_label, ceiling = "layers", "L", "layers, or steps, $L$", 4
    layers: Sequence[int]
    dim: int | None = None
    context: int | None = None
    seeds: Sequence[int] | None = None
    steps: int | None = None
    lr: float | None = None
    covariance: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.layers = different("layers", self.layers, 1, MAX_LAYERS)
        self.size = TrainingSettings(dim=self.dim, covariance=self.covariance).overrides()
        given = self.context, self.seeds, self.steps, self.lr, self.covariance
        own = TrainingSettings(None, self.dim, *given)
        self.training = own.overrides()

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for depth in self.layers:
            plain = runner.train("ahn/fig7", {"model.layers": depth, **self.training})
            same = {"task.context": plain.config["task"]["context"], "seeds": plain.run["seeds"]}
            settings = same | {"model.layers": depth} | self.size
            found |= self.compared(runner, "fig7", f"L{depth}", settings, plain)
        return found

    def claims(self, records: Records) -> list[Claim]:
        losses = Losses(records, self.varied)
        values, deeper = losses.xs, [depth for depth in losses.xs if depth > 1]
        claims = [self._one_layer(losses)] if 1 in values else []
        if deeper:
            claims += [self.compare(losses, "mean", pair, deeper) for pair in MEANS[:2]]
        claims += [self.compare(losses, "mean", pair, values) for pair in MEANS[2:]]
        if deeper:
            claims.append(self.claim_share_left(losses, deeper))
            claims += [self.compare(losses, "median", pair, deeper) for pair in MEDIANS]
            claims.append(self.claim_missed_tail(losses, deeper))
        return [*claims, self.claim_overstated_baseline(losses)]

    def _one_layer(self, losses: Losses) -> Claim:
        """Compare with one step of PGD, the optimum at L = 1, which trained weights can only approach."""
        return self._below(
            "At L = 1 the trained layer has the loss of one step of PGD, its optimum (Theorem 1)",
            {1: losses.of("difference_trained_pgd_steps", 1)},
            0.02,
            f"mean loss on the same contexts less than 2 % above PGD's, {LEVEL:.1%} paired interval",
            whose="paper",
        )
