"""Figure 8 of giannou: LSA and Newton's iteration on ill-conditioned and noisy regression."""

from __future__ import annotations

from matplotlib.axes import Axes

from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.giannou.regression import (
    Arrays,
    LossesByLaw,
    PromptLaw,
    family_line,
    runs_of,
    training_curve,
)
from icl.figures.runner import Runner
from icl.runs.record import RunRecord


class Fig8(LossesByLaw):
    """Draws for every law its runs, `losses_LAW` and `baselines_LAW`."""

    def runs(self, runner: Runner) -> Records:
        found: dict[str, RunRecord] = {}
        for law in self.laws:
            stacks = self.stacks(runner, law, False)
            found |= runs_of(stacks)
            found[f"baselines_{law.name}"] = self.baselines(runner, law, [False])
            found[f"losses_{law.name}"] = self.losses(runner, law, stacks)
        return found

    def draw_stacks(self, axes: Axes, law: PromptLaw, known: Arrays, losses: Arrays) -> None:
        training_curve(axes, self.layers, losses, f"{law.name}_unmasked")
        family_line(axes, self.layers, known, "unmasked")

    def claims(self, records: Records) -> list[Claim]:
        return [
            self.below_order_2(
                "trained LSA finds higher-order methods on ill-conditioned problems: two layers and more, "
                "without a mask, have a smaller loss than as many steps of order 2",
                records,
                "unmasked",
                [
                    "A few prompts in 10,000, in which S' has a large eigenvalue, carry the loss of three "
                    "layers that plain prompts trained: figure.tilted=true trains on prompts that show them.",
                    "Undecided where training is too short: icl figure giannou/fig8 scale=paper decides.",
                ],
                least=2,
            )
        ]
