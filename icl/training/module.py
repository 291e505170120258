"""The Lightning module: an ensemble of replicas trained as one batched program.

A Lightning batch is a fresh set of prompts with many optimizer steps on it, so that two hooks of ours stand
beside Lightning's. Any callback that has one is called:

    on_weights(trainer, pl_module, step)   the weights after `step` optimizer steps, of which
                                           `pl_module.snapshot` is a copy: at 0, 1, ..., total_steps
    on_step_end(trainer, pl_module, step)  `step` optimizer steps have been taken: 1, ..., total_steps
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from icl.errors import InputError
from icl.kernel.recording import NotRecordable
from icl.models import Transformer
from icl.models.coordinates import Coordinates
from icl.models.fused import Risk, fused_risk
from icl.random import generator
from icl.tasks.law import Law, Observables, RiskFunction
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.training.distributed import ProcessGroup
from icl.training.estimators import POPULATION, make_estimator
from icl.training.optimizers import OptimizerSpec, PerReplicaOptimizer, ReplicaOptimizer
from icl.training.settings import TrainSettings
from icl.training.stream import PromptStream

Pieces = Sequence[tuple[float, dict[str, Tensor]]]
EACH_STEP = ("on_before_backward", "on_after_backward", "on_before_optimizer_step")  # hooks of Lightning's


class Diverged(RuntimeError):
    """The loss of every seed stopped being a number."""


def divergence_message(diverged: Mapping[int, int]) -> str:
    """Return the message for diverged seeds: which, when, and what may help."""
    last = max(diverged.values())
    advice = "lower optimizer.lr or set train.clip" if last else "its prompts or first weights are too large"
    return f"the loss of seeds {sorted(diverged)} is not finite at step {last}: {advice}"


class WeightsSnapshot:
    """Weights at a step and what follows from them, in float64 on the CPU, computed once on demand."""

    def __init__(self, module: EnsembleModule, step: int, loss_R: Callable[[], Tensor]) -> None:
        self._module, self._loss_R, self.step = module, loss_R, step

    @functools.cached_property
    def loss_R(self) -> Tensor:
        return self._loss_R().detach().cpu().double()

    @functools.cached_property
    def weights(self) -> dict[str, Tensor]:
        """The weights, including non-finite ones."""
        return {name: M.detach().cpu().double() for name, M in self._module.matrices().items()}

    @functools.cached_property
    def matrices(self) -> dict[str, Tensor]:
        """The weights, zeros for a replica whose loss is no number, so that nothing fails over it."""
        sound_R = torch.isfinite(self.loss_R)
        if sound_R.all():
            return self.weights
        return {k: torch.where(sound_R.view(-1, *[1] * (M.ndim - 1)), M, 0) for k, M in self.weights.items()}

    @functools.cached_property
    def model(self) -> Transformer:
        """A model of the same kind with these weights."""
        model = model_in_float64(self._module.model)
        model.parametrization.load(self.matrices)
        return model

    @functools.cached_property
    def exact_risk_R(self) -> Tensor:
        """The exact risk, if the law has one; differentiable."""
        assert self._module.exact_risk is not None
        return self._module.exact_risk(self.model)

    @property
    def rates_R(self) -> Tensor:
        return torch.tensor(self._module.replicas.rates(), dtype=self._module.trained_dtype)

    @property
    def reliability(self) -> Mapping[str, Tensor]:
        """Reliability measures of the prompts in use."""
        return self._module.reliable


def model_in_float64(model: Transformer) -> Transformer:
    """Return a model of the same kind on the CPU, whose weights are loaded for evaluation."""
    family = model.parametrization
    zeros = {k: torch.zeros(v.shape, dtype=torch.float64) for k, v in family.matrices().items()}
    copy = family.sharing([torch.nn.Parameter(zero) for zero in zeros.values()])
    return model.on(copy)


class LawCache:
    """Exact risk and observables of a law for a model, cached since some take a while to build."""

    law: Law
    model: Transformer

    @functools.cached_property
    def exact_risk(self) -> RiskFunction | None:
        return self.law.exact_risk(self.model)

    @functools.cached_property
    def observables(self) -> Observables:
        return self.law.observe(self.model)


class EnsembleModule(LawCache, pl.LightningModule):
    """Manual optimization: every Lightning batch carries its prompts and the steps to take on them.

    It begins with the weights that `model` has. `backend` and `mode`: of torch.compile, for the risk.
    `kernel`: auto until there are prompts, then tile or eager.
    """

    def __init__(
        self,
        model: Transformer,
        law: Law,
        settings: TrainSettings,
        spec: OptimizerSpec,
        seeds: Sequence[int],
        dtype: torch.dtype,
        backend: str | None = None,
        kernel: str = "eager",
        mode: str | None = None,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model, self.law, self.spec, self.seeds = model, law, spec, tuple(seeds)
        self.settings = settings
        self.coordinates = Coordinates(settings.maps(model, law), dtype)
        self.trained = nn.ParameterDict(self.coordinates.parameters_of(model.parametrization.matrices()))
        alone = [law.replica(r) for r in range(len(seeds))] if spec.needs_per_replica_step else []
        made = [make_estimator(settings.estimator, model, of).to(dtype) for of in (law, *alone)]
        self._estimators = nn.ModuleList(made)  # moves with the module
        self.cut, self.reliability = made[0].pieces, made[0].reliability
        risks: list[Risk] = [estimator.risk for estimator in made]
        self.estimate, *self.estimate_replica = risks
        if backend is not None:
            self.estimate = torch.compile(self.estimate, backend=backend, mode=mode)
        self._fused: Callable[..., Tensor] | None = None  # the estimate through icl.kernel
        self.kernel, self.mode = kernel, mode
        self.clip_R, self.total_steps = settings.clip_for(len(seeds)), settings.steps
        self.saved_optimizer: dict[str, Any] | None = None
        self.trained_on = "cpu"
        self.reliable: Mapping[str, Tensor] = {}  # of the prompts in use
        self.process_group = ProcessGroup()
        self.measured: dict[str, Tensor] = {}  # (R,) by name, since prompts were last drawn
        self.depth: int | None = None  # of the layers, so many are in use; none: all
        self.snapshot: WeightsSnapshot
        self.register_load_state_dict_pre_hook(_without_constants)

    def load(self, parameters: Mapping[str, Tensor]) -> None:
        """Load the trained parameters of a checkpoint."""
        with torch.no_grad():
            for name, saved in parameters.items():
                self.trained[name].copy_(saved)

    def forward(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        """Predictions (R, B) at the weights trained."""
        return self._model().predict(prompt.to(self.device).to(self.trained_dtype))

    def matrices(self) -> dict[str, Tensor]:
        """Return the weights by the model's names, each (R, ..., rows, columns)."""
        with torch.no_grad():
            model = self._model() if self.coordinates.mapped else self.model  # of all layers
            return model.parametrization.matrices()

    @property
    def trained_dtype(self) -> torch.dtype:
        return next(iter(self.trained.values())).dtype

    def _model(self, parameters: Sequence[Tensor] | None = None, r: int | None = None) -> Transformer:
        """Model at the trained weights, or at those of replica r of these parameters."""
        if parameters is None and not self.coordinates.mapped:  # what is trained are its own parameters
            if self.depth is None:
                return self.model
            return self.model.on(self.model.parametrization.first(self.depth))
        names = list(self.model.parametrization.shapes())
        given = [self.trained[name] for name in names] if parameters is None else parameters
        matrices = self.coordinates.matrices_of(names, given, r)
        return self.model.on(self.model.parametrization.sharing(matrices))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        self.trained_on = str(self.device)
        device = next(iter(self.trained.values())).device.type
        if self.settings.estimator == POPULATION and device != "cpu":
            logging.getLogger(__name__).warning(
                "train.estimator=population: the exact risk is computed on the CPU, so every step copies "
                "the weights there and the gradient back; trainer.accelerator=cpu does without"
            )
        stacks = {name: self.trained[name] for name in self.model.parametrization.shapes()}
        self.replicas = ReplicaOptimizer(self.spec, stacks, self.clip_R)
        if self.saved_optimizer is not None:
            self.replicas.engine.load_state_dict(self.saved_optimizer)
        return self.replicas.engine

    def use_layers(self, depth: int) -> None:
        """Train the first `depth` layers from the next prompts on. The others are not computed."""
        self.depth = depth
        if self._fused is not None:  # the kernel has recorded another stack
            self.estimate, self._fused = self._estimators[0].risk, None  # type: ignore[assignment]

    def optimizer_state(self) -> dict[str, Any] | None:
        """Return the optimizer's state dict, or the one it will start from."""
        return self.replicas.engine.state_dict() if hasattr(self, "replicas") else self.saved_optimizer

    def prompts(self, first_step: int = 0, share: tuple[int, int] = (0, 1)) -> PromptStream:
        """Return the stream from this step on; `share`: rank and number of processes."""
        settings = self.settings
        return PromptStream(
            make_estimator(settings.estimator, self.model, self.law),
            self.seeds,
            settings.batch or 0,  # of nothing, where the population risk is taken
            settings.steps_per_batch,
            settings.steps,
            first_step,
            self.trained_dtype,
            share,
        )

    def train_dataloader(self) -> DataLoader:
        """Return the prompts of the whole training; one that a trainer continues skips those it has used."""
        return DataLoader(self.prompts(), batch_size=None)

    def val_dataloader(self) -> DataLoader:
        """Return one batch of prompts that training never sees, the same each time."""
        with torch.inference_mode(False):  # what a law keeps may be differentiated later
            generators = [generator(seed, "eval") for seed in self.seeds]
            draw = make_estimator(self.settings.estimator, self.model, self.law).draw(
                generators, self.settings.batch or 0
            )
        batch: Any = [{"draw": {name: tensor.to(self.trained_dtype) for name, tensor in draw.items()}}]
        return DataLoader(batch, batch_size=None)

    def __setattr__(self, name: str, value: Any) -> None:
        # Lightning notes the hook it is in, before and after each; torch's way looks among parameters,
        # buffers and modules first.
        if name in ("_current_fx_name", "snapshot"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def on_train_start(self) -> None:
        callbacks: list[pl.Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        disable_noop_hooks(self, pl.LightningModule)
        for callback in callbacks:
            disable_noop_hooks(callback, pl.Callback)
        self._is_recorded = any(hasattr(callback, "row_steps") for callback in callbacks)
        self._diverged: dict[int, int] = {}
        self._on_weights, self._on_step_end = (
            [getattr(callback, name) for callback in callbacks if hasattr(callback, name)]
            for name in ("on_weights", "on_step_end")
        )

    def training_step(self, batch: dict[str, Any], _: int) -> None:
        draw, taken = batch["draw"], self.trainer.global_step
        steps = [step for step in batch["steps"] if step >= taken]
        if not steps:
            self._skip_to(taken)
            return
        if self.estimate is not self._fused:
            self._choose_kernel(draw)
        self.reliable = self.reliability(draw)
        take = self._step_each(draw) if self.spec.needs_per_replica_step else self._step_all(draw)
        for step in steps:
            self.replicas.set_rates(step)
            take(step)
            for hook in self._on_step_end:
                hook(self.trainer, self, step + 1)
        if step + 1 == self.total_steps:
            self._show(self.total_steps, self._averaged(lambda: self._loss(draw)))
            self.trainer.should_stop = True  # a further epoch would be of the same prompts
        self._log_means()

    def _skip_to(self, step: int) -> None:
        """Skip the prompts that a training continued by a stock trainer has used."""
        if step >= self.total_steps:
            self.trainer.should_stop = True
        stream = getattr(self.trainer.train_dataloader, "dataset", None)
        if isinstance(stream, PromptStream):
            stream.skip_to(step)

    def _log_means(self) -> None:
        """Log means over seeds with a finite loss, once a batch of prompts: of the loss and of what was
        measured since the last. Callbacks find them where Lightning puts what a module logs. A run's loggers
        have its rows already."""
        measured, self.measured = self.measured, {}
        loss_R = self.snapshot.loss_R
        sound_R = torch.isfinite(loss_R)
        found = {"loss": loss_R, **measured}
        means = {name: float(value_R[sound_R].mean()) for name, value_R in found.items()}
        self.log_dict(means, logger=False)
        if self._is_recorded or not self.process_group.is_rank_zero:
            return
        for logger in self.trainer.loggers:
            logger.log_metrics(
                {"loss": means["loss"]}, self.snapshot.step
            )  # what is measured has been logged
        new = [s for s, sound in zip(self.seeds, sound_R.tolist(), strict=True) if not sound]
        if set(new) - set(self._diverged):
            self._diverged |= {seed: self.snapshot.step for seed in new}
            half = self.trained_dtype == torch.float16
            more = "; float16 weights are too coarse for it: use precision 32-true" if half else ""
            logging.getLogger(__name__).warning("%s", divergence_message(self._diverged) + more)

    def validation_step(self, batch: dict[str, Any], _: int) -> None:
        """`val_loss`: the mean over the seeds of the risk on prompts that training never sees."""
        with torch.inference_mode(False), torch.no_grad():
            risk_R: Tensor = self._estimators[0].risk(self._model(), batch["draw"])  # type: ignore[operator]
        self.log("val_loss", risk_R.double().mean(), batch_size=1)

    def predict_step(self, batch: Sequence[Tensor], *_: int) -> Tensor:
        """Predictions (R, B) in the sign of the labels, of x (B, N, D), y (B, N), x_query (B, D)."""
        shared = [value[None].expand(len(self.seeds), *value.shape) for value in batch]
        predicted_RB: Tensor = self(self.law.encode(*shared))
        return predicted_RB

    def on_train_batch_end(self, *_: object) -> None:
        # What a callback logs, loggers put at this number, which else counts batches.
        self.trainer.fit_loop.epoch_loop._batches_that_stepped = self.trainer.global_step

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip the gradient; callbacks' hooks of this name run before and see it unclipped."""
        self.replicas.clip()

    def _choose_kernel(self, draw: dict[str, Tensor]) -> None:
        """Choose the kernel at the first prompts. A tile's prompts stay in registers: the draw is not cut."""
        if self.kernel == "eager":
            return
        try:
            self._fused = fused_risk(self.estimate, self._model(), draw)
            self.estimate_replica = [
                fused_risk(risk, self._model(self.replicas.views[r], r), own)
                for r, (risk, own) in enumerate(zip(self.estimate_replica, self._of_each(draw), strict=False))
            ]
            self.estimate = self._fused
            self.cut = lambda draw: [(1.0, draw)]
            self.kernel = "tile"
        except NotRecordable as reason:
            if self.kernel == "tile":
                begun = "a run keeps its kernel; force=true starts it again"
                raise InputError(f"trainer.kernel=tile: {reason} ({begun})") from reason
            self.kernel = "eager"

    def _step_all(self, draw: dict[str, Tensor]) -> Callable[[int], None]:
        pieces, optimizer = self.cut(draw), self._optimizer()

        def take(step: int) -> None:
            self.replicas.clear_gradients()
            if self.mode is not None:  # CUDA graphs write each step's results to the same memory
                torch.compiler.cudagraph_mark_step_begin()
            losses = []
            for share, piece in pieces:
                loss_R = self.estimate(self._model(), piece) * share
                self.manual_backward(loss_R.sum())
                losses.append(loss_R.detach())
            stacks = self.replicas.stacks.values()
            gradients = [stack.grad for stack in stacks if stack.grad is not None]
            self._show(step, self._averaged(lambda: torch.stack(losses).sum(0), gradients))
            self.replicas.attach_gradients()
            optimizer.step()

        return take

    def _step_each(self, draw: dict[str, Tensor]) -> Callable[[int], None]:
        """Step each replica by its own L-BFGS, one after another: one optimizer would couple them."""
        engine, optimizer = self.replicas.engine, self._optimizer()
        assert isinstance(engine, PerReplicaOptimizer)
        pieces_R = [self.cut(own) for own in self._of_each(draw)]

        def closure() -> float:
            r, total = engine.current_replica, 0.0
            engine.engines[r].zero_grad()
            for share, piece in pieces_R[r]:
                model = self._model(self.replicas.views[r], r)
                loss = self.estimate_replica[r](model, piece).sum() * share
                self.manual_backward(loss)
                total += loss.item()
            return total

        def take(step: int) -> None:
            self._show(step, lambda: self._loss(draw))
            optimizer.step(closure)

        return take

    def _of_each(self, draw: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Return each replica's prompts, as an ensemble of one."""
        return [{name: t[r : r + 1] for name, t in draw.items()} for r in range(len(self.seeds))]

    def _optimizer(self) -> LightningOptimizer:
        """Return the optimizer as Lightning wraps it, for its precision and step counts."""
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)
        return optimizer

    def _loss(self, draw: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            return self.estimate(self._model(), draw)

    def risk(self, draw: dict[str, Tensor]) -> Tensor:
        """Return the risk of each replica on these prompts, computed without the kernel."""
        found: Tensor = self._estimators[0].risk(self._model(), draw)  # type: ignore[operator]
        return found

    def _averaged(
        self, loss_R: Callable[[], Tensor], gradients: Sequence[Tensor] = ()
    ) -> Callable[[], Tensor]:
        """Average loss and gradients over processes."""
        if self.process_group.size == 1:
            return loss_R
        mean_R = loss_R()
        self.process_group.average([mean_R, *gradients])
        return lambda: mean_R

    def _show(self, step: int, loss_R: Callable[[], Tensor]) -> None:
        self.snapshot = WeightsSnapshot(self, step, loss_R)
        for hook in self._on_weights:
            hook(self.trainer, self, step)


def disable_noop_hooks(owner: object, base: type) -> None:
    """Set hooks that `owner` inherits unchanged from `base` to None, which Lightning skips.

    It enters a profile for every other hook, empty or not, at each step.
    """
    for name in EACH_STEP:
        if name not in vars(owner) and getattr(type(owner), name) is getattr(base, name):
            setattr(owner, name, None)


def _without_constants(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: object) -> None:
    """Drop constants that earlier checkpoints hold and that are made from the law now."""
    for name in list(state_dict):
        if name.startswith((f"{prefix}_estimators.", f"{prefix}coordinates.")):
            del state_dict[name]
