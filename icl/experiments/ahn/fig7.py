"""ahn, Figure 7: test loss against the number of layers, or of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.errors import InputError, whole
from icl.experiments.ahn.paired import Sizes, compare
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord

MAX_LAYERS = 4  # of the exact polynomial with B


class Fig7:
    """Trains ahn/tail, on weighted prompts, and ahn/fig7, on plain ones, at every depth, all seeds of a depth
    as one run."""

    def __init__(self, layers: Sequence[int], test_contexts: int, search_contexts: int) -> None:
        if isinstance(layers, str) or not isinstance(layers, Sequence) or not layers:
            raise InputError(f"figure.experiment.layers={layers}: must be a list of depths")
        self.layers = [whole("figure.experiment.layers", depth, 1, MAX_LAYERS) for depth in layers]
        if len(set(self.layers)) < len(self.layers):
            raise InputError(f"figure.experiment.layers={self.layers}: has duplicates")
        self.sizes = Sizes(test_contexts, search_contexts)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found = {}
        for depth in self.layers:
            plain = runner.train("ahn/fig7", {"model.layers": depth})
            same = {"task.context": plain.config["task"]["context"], "seeds": plain.run["seeds"]}
            trained = runner.train("ahn/tail", same | {"model.layers": depth})
            found[f"trained_L{depth}"], found[f"plain_L{depth}"] = trained, plain
            found[f"losses_L{depth}"] = compare(runner, "ahn/fig7_losses", trained, plain, self.sizes)
        return found
