"""ahn, Figure 7: test loss against the number of layers, or of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.experiments.ahn.paired import Sizes, compare, initial_sizes, train_starts
from icl.experiments.ahn.theorem4 import MAX_LAYERS
from icl.experiments.runner import Runner
from icl.experiments.training import TrainingSettings, different
from icl.runs.record import RunRecord

HALVINGS = 4  # of the learning rate, as at laptop scale


class Fig7:
    """Trains ahn/tail, on weighted prompts, from initializations of all `init_stds`, and ahn/fig7, on plain
    ones, at every depth, all seeds of a depth as one run. `lr`, `steps`: of the latter."""

    def __init__(
        self,
        layers: Sequence[int],
        test_contexts: int,
        search_contexts: int,
        init_stds: Sequence[float] = (0.1,),
        dim: int | None = None,
        context: int | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.layers = different("layers", layers, 1, MAX_LAYERS)
        self.sizes = Sizes(test_contexts, search_contexts)
        self.init_stds = initial_sizes(init_stds)
        self.size = TrainingSettings(dim=dim)
        self.training = TrainingSettings(None, dim, context, seeds, steps, lr)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for depth in self.layers:
            plain = runner.train("ahn/fig7", {"model.layers": depth, **self.training.overrides(HALVINGS)})
            same = {"task.context": plain.config["task"]["context"], "seeds": plain.run["seeds"]}
            settings = same | {"model.layers": depth} | self.size.overrides()
            trained = train_starts(runner, settings, self.init_stds)
            found |= {f"trained_L{depth}_{k}": run for k, run in enumerate(trained)}
            found[f"plain_L{depth}"] = plain
            found[f"losses_L{depth}"] = compare(runner, "ahn/fig7_losses", trained, plain, self.sizes)
        return found
