"""ahn, Figure 6: test loss against the number of examples, three layers against three steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.errors import InputError, real, whole
from icl.experiments.ahn.paired import Sizes, compare
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord

SEED_STEP = 1000  # replica k at N examples has the seed k * SEED_STEP + N, whatever else is trained


class Fig6:
    """Trains ahn/tail, on weighted prompts, and ahn/fig6, on plain ones, at every context length,
    `contexts_per_run` of them as one batched run. `lr`, `lr_below_5`: of the latter."""

    def __init__(
        self,
        contexts: Sequence[int],
        replicas: int,
        contexts_per_run: int,
        lr: float,
        lr_below_5: float,
        test_contexts: int,
        search_contexts: int,
    ) -> None:
        key = "figure.experiment"
        if isinstance(contexts, str) or not isinstance(contexts, Sequence) or not contexts:
            raise InputError(f"{key}.contexts={contexts}: must be a list of context lengths")
        self.contexts = [whole(f"{key}.contexts", n, 1, SEED_STEP - 1) for n in contexts]
        if len(set(self.contexts)) < len(self.contexts):
            raise InputError(f"{key}.contexts={self.contexts}: has duplicates")
        self.replicas = whole(f"{key}.replicas", replicas, 1)
        self.contexts_per_run = whole(f"{key}.contexts_per_run", contexts_per_run, 1)
        self.lr = real(f"{key}.lr", lr, 0, open_low=True)
        self.lr_below_5 = real(f"{key}.lr_below_5", lr_below_5, 0, open_low=True)
        self.sizes = Sizes(test_contexts, search_contexts)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found = {}
        for start in range(0, len(self.contexts), self.contexts_per_run):
            group = self.contexts[start : start + self.contexts_per_run]
            replicas = [(n, k) for n in group for k in range(self.replicas)]
            task = {
                "seeds": [k * SEED_STEP + n for n, k in replicas],
                "task.context": [n for n, _ in replicas],
            }
            rates = {"optimizer.lr": [self.lr_below_5 if n < 5 else self.lr for n, _ in replicas]}
            trained = runner.train("ahn/tail", task)
            plain = runner.train("ahn/fig6", task | rates)
            label = "_".join(map(str, group))
            found[f"trained_N{label}"], found[f"plain_N{label}"] = trained, plain
            found[f"losses_N{label}"] = compare(
                runner, "ahn/fig6_losses", trained, plain, self.sizes, least_squares=True
            )
        return found
