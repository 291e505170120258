"""Figure 2 of giannou: test loss by layers of LSA, and by steps of Newton's iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.errors import whole
from icl.experiments.giannou.regression import (
    KEY,
    PUBLISHED_LARGEST,
    PromptLaw,
    RegressionSize,
    Trained,
    baselines,
    layernorm,
    losses,
    risks,
    runs_of,
    train_by_depth,
    train_from_best,
)
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord

TOKENS = 5000  # prompts drawn token by token, at most


class Fig2:
    """records: masked and not, a run for every depth from random weights, or one that grew through them, and
    a run for every depth from the family's best point; `losses`, `risks` and `baselines`; and with LayerNorm,
    without a mask, a run for every depth and `losses_kappa1_layernorm`."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        started_steps: int,
        prompts: int,
        layernorm_layers: Sequence[int],
        layernorm_steps: int,
        lr: float | None = None,
        grown: bool = False,
        starts: int = 1,
    ) -> None:
        whole(f"{KEY}.started_steps", started_steps, 10)
        self.size = RegressionSize(
            dim, context, layers, seeds, steps, prompts, started_steps, lr=lr, grown=grown, starts=starts
        )
        tokens = min(prompts, TOKENS)
        self.layernorm = RegressionSize(
            dim, context, layernorm_layers, seeds, layernorm_steps, tokens, name="layernorm_", lr=lr
        )
        self.law = PromptLaw(1.0, PUBLISHED_LARGEST, 0.0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        size, law, depths = self.size, self.law, self.size.depths
        known = baselines(runner, size, law, depths)
        trained: dict[str, Trained] = {}
        started: dict[str, Trained] = {}
        for mask in (False, True):
            trained |= train_by_depth(runner, size, law, mask)
            started |= train_from_best(runner, size, law, mask, known, depths)
        runs = trained | started
        compared = losses(runner, size, law, runs, known)
        expected = risks(runner, size, law, trained, started, known)
        normalised = layernorm(runner, self.layernorm, law)
        return {**runs_of(runs), "losses": compared, "risks": expected, "baselines": known, **normalised}
