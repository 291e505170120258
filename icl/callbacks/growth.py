"""Training depth by depth: a layer at a time is added to a trained stack, and all layers are trained on.

R replicas, L layers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.errors import InputError, whole
from icl.random import generator
from icl.training.estimators import make_estimator
from icl.training.hooks import RunCallback

if TYPE_CHECKING:
    from icl.training.module import EnsembleModule
    from icl.training.trainer import RunComponents

COMPARED, PARTS = 4000, 10  # prompts at a time, and how often, that starts are compared on: rare ones decide


class Growth(RunCallback):
    """Trains `first` layers at once, one more every `every` steps, up to the model's; null for all at once.

    A new layer has the first weights that its seed gives it, the optimizer begins again, and layers that have
    not begun are zero, so that the stack passes through them. With `starts`, neighbouring seeds are several
    starts of one training: after each depth all of them go on from the one whose training risk is least on
    fresh prompts. What is drawn is a function of the seed and the step, and a run that resumes goes on with
    the same weights.
    """

    role = "trains"

    def __init__(self, every: int | None = 3000, first: int = 1, starts: int = 1) -> None:
        self.every = None if every is None else whole("Growth.every", every, 1)
        self.first = whole("Growth.first", first, 1)
        self.starts = whole("Growth.starts", starts, 1)

    def kept_steps(self, total: int) -> Sequence[int]:
        """Return the steps at which a depth ends."""
        return [] if self.every is None else list(range(self.every, total + 1, self.every))

    def validate_run(self, run: RunComponents, replicas: int) -> None:
        """Refuse steps that `every` does not divide by depth, starts that do not divide the seeds, and models
        and coordinates in which a layer is not a matrix of its own."""
        family, train, every = run.model.parametrization, run.train, self.every
        depths = family.layers - self.first + 1
        apart = {shape[0] for shape in family.shapes().values()} <= {1, family.layers}
        plain = train.coordinates == "plain" and not run.optimizer.needs_per_replica_step
        own = "callbacks.growth"
        if replicas % self.starts:
            raise InputError(f"{own}.starts={self.starts}: must divide the {replicas} seeds")
        if every is None and self.starts > 1:
            raise InputError(f"{own}.starts={self.starts}: needs {own}.every")
        if every is None:
            return
        if depths < 1:
            raise InputError(f"{own}.first={self.first}: must be at most model.layers={family.layers}")
        if train.steps != (total := every * depths):
            each = f"{own}.every={every} for each of {depths} depths"
            raise InputError(f"train.steps={train.steps}: must be {each}, {total}")
        if every % train.steps_per_batch:
            multiple = f"a multiple of train.steps_per_batch={train.steps_per_batch}"
            raise InputError(f"{own}.every={every}: must be {multiple}")
        if not apart or not plain:
            raise InputError(
                f"{own}: needs a model whose layers all have the same matrices, train.coordinates=plain and "
                "an optimizer other than L-BFGS; set every to null"
            )

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        if self.every is None:
            return
        if trainer.global_step == 0:
            with torch.no_grad():
                for stack in self._by_layer(pl_module).values():
                    stack[:, self.first :] = 0
        pl_module.use_layers(self._depth(pl_module, trainer.global_step))

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if self.every is None or step % self.every:
            return
        self._keep_best(pl_module, step)
        if step < pl_module.total_steps:
            self._begin(pl_module, self._depth(pl_module, step))

    def _depth(self, module: EnsembleModule, step: int) -> int:
        assert self.every is not None
        return min(self.first + step // self.every, module.model.parametrization.layers)

    def _by_layer(self, module: EnsembleModule) -> dict[str, Tensor]:
        layers = module.model.parametrization.layers
        return {name: stack for name, stack in module.trained.items() if stack.shape[1] == layers > 1}

    def _begin(self, module: EnsembleModule, depth: int) -> None:
        fresh = copy.deepcopy(module.model.parametrization)
        fresh.initialise(module.seeds, module.trained_dtype)
        first = fresh.matrices()
        with torch.no_grad():
            for name, stack in self._by_layer(module).items():
                stack[:, depth - 1] = first[name][:, depth - 1].to(stack.device)
        module.replicas.optimizer.state.clear()
        module.use_layers(depth)

    def _keep_best(self, module: EnsembleModule, step: int) -> None:
        """Give the weights of the best of each group of starts to all of the group."""
        if self.starts == 1:
            return
        first = [module.seeds[r - r % self.starts] for r in range(len(module.seeds))]
        estimator = make_estimator(module.settings.estimator, module.model, module.law)
        streams = [generator(seed, "search", step) for seed in first]
        with torch.no_grad():
            risks = []
            for _ in range(PARTS):
                drawn = estimator.draw(streams, COMPARED)
                to = module.device, module.trained_dtype
                risks.append(module.risk({name: tensor.to(*to) for name, tensor in drawn.items()}))
            risk_R = torch.stack(risks).sum(0).nan_to_num(nan=torch.inf)
            best_G1 = risk_R.view(-1, self.starts).argmin(1, keepdim=True)
            start_R = torch.arange(0, len(first), self.starts, device=best_G1.device)[:, None] + best_G1
            index_R = start_R.expand(-1, self.starts).reshape(-1)
            for stack in module.trained.values():
                stack.copy_(stack[index_R])
