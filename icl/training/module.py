"""The Lightning module: an ensemble of replicas trained as one batched program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from icl.models import LinearTransformer
from icl.models.coordinates import Coordinates
from icl.tasks.law import Estimator
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer

Pieces = Sequence[tuple[float, dict[str, Tensor]]]


class Watcher(Protocol):
    """Sees the weights before optimizer step `step`, with the loss there; and once more at the end."""

    def wants(self, step: int) -> bool: ...

    def see(
        self, step: int, loss_R: Tensor, matrices: Mapping[str, Tensor], rates: Sequence[float]
    ) -> None: ...


class Diverged(RuntimeError):
    """A loss stopped being a number."""


class EnsembleModule(pl.LightningModule):
    """Manual optimization: every Lightning batch carries its prompts and the steps to take on them.

    `after_step(step)` is called when `step` optimizer steps have been taken; it saves checkpoints and may
    raise.
    """

    def __init__(
        self,
        model: LinearTransformer,
        coordinates: Coordinates,
        estimator: Estimator,
        replica_estimators: Sequence[Estimator],
        spec: OptimizerSpec,
        clip_R: Sequence[float] | None,
        seeds: Sequence[int],
        total_steps: int,
        watchers: Sequence[Watcher],
        after_step: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model, self.coordinates = model, coordinates
        self.trained = nn.ParameterDict(coordinates.parameters_of(model.parametrization.matrices()))
        self._estimators = nn.ModuleList([estimator, *replica_estimators])  # moves with the module
        self.cut, self.reliability = estimator.pieces, estimator.reliability
        self.estimate, self.estimate_replica = estimator.risk, [own.risk for own in replica_estimators]
        self.spec, self.clip_R, self.seeds = spec, clip_R, tuple(seeds)
        self.total_steps, self.watchers, self.after_step = total_steps, watchers, after_step
        self.saved_optimizer: dict[str, Any] | None = None
        self.trained_on = "cpu"
        self.reliable: Mapping[str, Tensor] = {}  # of the prompts in use

    def load(self, parameters: Mapping[str, Tensor]) -> None:
        """What a checkpoint holds of `trained`."""
        with torch.no_grad():
            for name, saved in parameters.items():
                self.trained[name].copy_(saved)

    def _model(self, parameters: Sequence[Tensor] | None = None, r: int | None = None) -> LinearTransformer:
        """At the weights trained, or at replica r's of these parameters."""
        names = list(self.model.parametrization.shapes())
        given = [self.trained[name] for name in names] if parameters is None else parameters
        matrices = self.coordinates.matrices_of(names, given, r)
        return self.model.on(self.model.parametrization.sharing(matrices))

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        self.trained_on = str(self.device)
        stacks = {name: self.trained[name] for name in self.model.parametrization.shapes()}
        self.engine = ReplicaOptimizer(self.spec, stacks, self.clip_R)
        if self.saved_optimizer is not None:
            self.engine.load_state_dict(self.saved_optimizer)
        return self.engine.engines

    def training_step(self, batch: dict[str, Any], _: int) -> None:
        draw = batch["draw"]
        self.reliable = self.reliability(draw)
        pieces = [] if self.spec.couples_replicas else self.cut(draw)
        for step in batch["steps"]:
            self.engine.set_rates(step)
            if self.spec.couples_replicas:
                self._look(step, draw)
                self._step_one_by_one(draw)
            else:
                self._step_together(step, pieces)
            self.after_step(step + 1)
        if step + 1 == self.total_steps:
            self._look(self.total_steps, draw)

    def _look(self, step: int, draw: dict[str, Tensor]) -> None:
        if any(watcher.wants(step) for watcher in self.watchers):
            with torch.no_grad():
                loss_R = self.estimate(self._model(), draw)
            self._show(step, loss_R)

    def _step_together(self, step: int, pieces: Pieces) -> None:
        for stack in self.engine.stacks.values():
            stack.grad = None
        losses = []
        for share, piece in pieces:
            loss_R = self.estimate(self._model(), piece) * share
            loss_R.sum().backward()
            losses.append(loss_R.detach())
        self._show(step, torch.stack(losses).sum(0))
        self.engine.attach_gradients()
        self.engine.step()

    def _step_one_by_one(self, draw: dict[str, Tensor]) -> None:
        """L-BFGS couples all it is given, so each replica has its own and they step one after another."""
        for r, (views, engine) in enumerate(zip(self.engine.views, self.engine.engines, strict=True)):
            own = {name: tensor[r : r + 1] for name, tensor in draw.items()}
            pieces = self.cut(own)

            def closure(r: int = r, views: Sequence[Tensor] = views, pieces: Pieces = pieces) -> float:
                self.engine.engines[r].zero_grad()
                total = 0.0
                for share, piece in pieces:
                    loss = self.estimate_replica[r](self._model(views, r), piece).sum() * share
                    loss.backward()
                    total += loss.item()
                return total

            engine.step(closure)

    def _show(self, step: int, loss_R: Tensor) -> None:
        interested = [watcher for watcher in self.watchers if watcher.wants(step)]
        if not interested:
            return
        if not torch.isfinite(loss_R).all():
            bad = [
                seed
                for seed, loss in zip(self.seeds, loss_R.tolist(), strict=True)
                if not math.isfinite(loss)
            ]
            advice = "lower optimizer.lr or set train.clip"
            raise Diverged(f"the loss of seeds {bad} is not finite at step {step}: {advice}")
        with torch.no_grad():
            now = self._model().parametrization.matrices()
        matrices = {k: v.detach().double().cpu() for k, v in now.items()}
        for watcher in interested:
            watcher.see(step, loss_R.double().cpu(), matrices, self.engine.rates())
