"""ahn, Figure 6: test loss against the number of examples, three layers against three steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.config import resolve_seeds
from icl.errors import real, whole
from icl.experiments.ahn.paired import Sizes, compare, initial_sizes, train_starts
from icl.experiments.ahn.theorem4 import MAX_LAYERS
from icl.experiments.runner import Runner
from icl.experiments.training import KEY, TrainingSettings, different
from icl.runs.record import RunRecord

HALVINGS = 4  # of the learning rate, as at laptop and paper scale
SEED_STEP = 1000  # seed k at N examples is that of replica k * SEED_STEP + N, whatever else is trained


class Fig6:
    """Trains ahn/tail, on weighted prompts, from initializations of all `init_stds`, and ahn/fig6, on plain
    ones, at every context length, `contexts_per_run` of them as one batched run. `lr`, `lr_below_5`,
    `steps`: of the latter."""

    def __init__(
        self,
        context: Sequence[int],
        seeds: Sequence[int],
        contexts_per_run: int,
        lr: float,
        lr_below_5: float,
        test_contexts: int,
        search_contexts: int,
        init_stds: Sequence[float] = (0.1,),
        draws: int = 0,
        layers: int | None = None,
        dim: int | None = None,
        steps: int | None = None,
    ) -> None:
        self.contexts = different("context", context, 1, SEED_STEP - 1)
        self.seeds = resolve_seeds(seeds, None)
        self.contexts_per_run = whole(f"{KEY}.contexts_per_run", contexts_per_run, 1)
        self.lr = real(f"{KEY}.lr", lr, 0, open_low=True)
        self.lr_below_5 = real(f"{KEY}.lr_below_5", lr_below_5, 0, open_low=True)
        self.sizes = Sizes(test_contexts, search_contexts, draws)
        self.init_stds = initial_sizes(init_stds)
        if layers is not None:
            whole(f"{KEY}.layers", layers, 1, MAX_LAYERS)
        self.size = TrainingSettings(layers, dim)
        self.training = TrainingSettings(layers, dim, steps=steps)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found: dict[str, RunRecord] = {}
        for start in range(0, len(self.contexts), self.contexts_per_run):
            group = self.contexts[start : start + self.contexts_per_run]
            replicas = [(n, k) for n in group for k in self.seeds]
            task = {
                "seeds": [k * SEED_STEP + n for n, k in replicas],
                "task.context": [n for n, _ in replicas],
            }
            rates = {"optimizer.lr": [self.lr_below_5 if n < 5 else self.lr for n, _ in replicas]}
            trained = train_starts(runner, task | self.size.overrides(), self.init_stds)
            plain = runner.train("ahn/fig6", task | rates | self.training.overrides(HALVINGS))
            label = "_".join(map(str, group))
            found |= {f"trained_N{label}_{k}": run for k, run in enumerate(trained)}
            found[f"plain_N{label}"] = plain
            found[f"losses_N{label}"] = compare(
                runner, "ahn/fig6_losses", trained, plain, self.sizes, least_squares=True
            )
        return found
