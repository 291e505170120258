"""Figure 9 of giannou: LSA with LayerNorm and Newton's iteration on ill-conditioned and noisy regression."""

from dataclasses import dataclass

from icl.errors import whole
from icl.figures.giannou.regression import LossesByLaw, PromptLaw, Stack
from icl.figures.runner import Runner
from icl.figures.training import KEY


@dataclass(eq=False, kw_only=True)
class Fig9(LossesByLaw):
    """`steps`: where kappa is 1, the runs of Figure 2; else `conditioned_steps`, `grown`."""

    conditioned_steps: int
    kind = "layernorm"
    sentence = (
        "trained LSA with LayerNorm finds higher-order methods on ill-conditioned problems: it has a smaller "
        "loss than as many steps of order 2"
    )
    remarks = (
        "A loss that is below stays there; one that is above may fall with longer training: icl figure "
        "figure=giannou/fig9 scale=paper decides.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"{KEY}.conditioned_steps", self.conditioned_steps, 10)

    def trained(self, runner: Runner, law: PromptLaw) -> dict[str, Stack]:
        steps, grown = (self.steps, False) if law.condition == 1 else (self.conditioned_steps, self.grown)
        return self.layernorm(runner, law, self.layers, steps, grown)
