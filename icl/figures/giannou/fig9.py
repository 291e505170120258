"""Figure 9 of giannou: LSA with LayerNorm and Newton's iteration on ill-conditioned and noisy regression."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from icl.errors import whole
from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.giannou.regression import Arrays, LossesByLaw, PromptLaw, runs_of, training_curve
from icl.figures.runner import Runner
from icl.figures.training import KEY
from icl.runs.record import RunRecord


@dataclass(eq=False, kw_only=True)
class Fig9(LossesByLaw):
    """Draws for every law its runs by depth, or the one that grew through them, `losses_LAW_layernorm` and
    `baselines_LAW`. `steps`: where kappa is 1, the runs of Figure 2; else `conditioned_steps`, `grown`."""

    conditioned_steps: int
    suffix = "_layernorm"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"{KEY}.conditioned_steps", self.conditioned_steps, 10)

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            steps, grown = (self.steps, False) if law.condition == 1 else (self.conditioned_steps, self.grown)
            stacks = self.layernorm(runner, law, self.layers, steps, grown)
            found |= runs_of(stacks)
            found[f"losses_{law.name}_layernorm"] = self.losses(runner, law, stacks)
            found[f"baselines_{law.name}"] = self.baselines(runner, law, [])
        return found

    def draw_stacks(self, axes: Axes, law: PromptLaw, known: Arrays, losses: Arrays) -> None:
        training_curve(axes, self.layers, losses, f"{law.name}_layernorm")

    def claims(self, records: Records) -> list[Claim]:
        return [
            self.below_order_2(
                "trained LSA with LayerNorm finds higher-order methods on ill-conditioned problems: it has a "
                "smaller loss than as many steps of order 2",
                records,
                "layernorm",
                [
                    "A loss that is below stays there; one that is above may fall with longer training: icl "
                    "figure figure=giannou/fig9 scale=paper decides.",
                ],
            )
        ]
