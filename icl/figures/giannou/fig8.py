"""Figure 8 of giannou: LSA and Newton's iteration on ill-conditioned and noisy regression."""

from icl.figures.giannou.regression import LossesByLaw, PromptLaw, Stack
from icl.figures.runner import Runner


class Fig8(LossesByLaw):
    kind, masks, least = "unmasked", (False,), 2
    sentence = (
        "trained LSA finds higher-order methods on ill-conditioned problems: two layers and more, without a "
        "mask, have a smaller loss than as many steps of order 2"
    )
    remarks = (
        "A few prompts in 10,000, in which S' has a large eigenvalue, carry the loss of three layers that "
        "plain prompts trained: figure.tilted=true trains on prompts that show them.",
        "Undecided where training is too short: icl figure giannou/fig8 scale=paper decides.",
    )

    def trained(self, runner: Runner, law: PromptLaw) -> dict[str, Stack]:
        return self.stacks(runner, law, False)
