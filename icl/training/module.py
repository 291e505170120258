"""The Lightning module: an ensemble of replicas trained as one batched program.

A Lightning batch is a fresh set of prompts with many optimizer steps on it. Under any Trainer the module has
its own prompts, and continues from a checkpoint of Lightning's (`ckpt_path`), in the middle of a set too, bit
for bit. Of several processes (DDP) each draws its share of every set; gradients and losses are averaged.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
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
from icl.training.estimators import make_estimator
from icl.training.hooks import RunCallback
from icl.training.optimizers import OptimizerSpec, PerReplicaOptimizer, ReplicaOptimizer
from icl.training.stream import PromptSet, PromptStream
from icl.training.trainer import LoopConfig


class Diverged(RuntimeError):
    """The loss of every seed stopped being a number."""


def divergence_message(diverged: Mapping[int, int]) -> str:
    """Return the message for diverged seeds: which, when, and what may help."""
    last = max(diverged.values())
    advice = "lower optimizer.lr or set train.clip" if last else "its prompts or first weights are too large"
    return f"the loss of seeds {sorted(diverged)} is not finite at step {last}: {advice}"


class WeightsSnapshot:
    """Weights at a step and what follows from them, in float64 on the CPU, computed once on demand.

    `measured`: numbers of this step, (R,) by name, from callbacks.
    """

    def __init__(self, module: "EnsembleModule", step: int, loss_R: Callable[[], Tensor]) -> None:
        self._module, self._loss_R, self.step = module, loss_R, step
        self.measured: dict[str, Tensor] = {}

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
        return model_in_float64(self._module.model, self.matrices)

    @functools.cached_property
    def exact_risk_R(self) -> Tensor:
        """The exact risk, if the law has one; differentiable."""
        assert self._module.exact_risk is not None
        return self._module.exact_risk(self.model)

    @property
    def row(self) -> dict[str, Tensor]:
        """The loss, the learning rate, the reliability of the prompts in use and what is measured."""
        rates_R = torch.tensor(self._module.replicas.rates(), dtype=self._module.trained_dtype)
        return {"loss": self.loss_R, "lr": rates_R, **self._module.reliable, **self.measured}

    def measure_end(self) -> None:
        """Measure what every run has of its last weights, where no callback has done so."""
        module = self._module
        if not set(module.observables.names()) <= set(self.measured):
            with torch.no_grad():
                self.measured |= module.observables.at(self.model)
        if module.exact_risk is not None and "exact_risk" not in self.measured:
            self.measured["exact_risk"] = self.exact_risk_R.detach()


def model_in_float64(model: Transformer, matrices: dict[str, Tensor]) -> Transformer:
    """Return a model of the same kind with these weights, in float64 on the CPU."""
    empty = [nn.Parameter(torch.zeros(M.shape, dtype=torch.float64)) for M in matrices.values()]
    family = model.parametrization.sharing(empty)
    family.load(matrices)
    return model.on(family)


class EnsembleModule(pl.LightningModule):
    """Manual optimization: every Lightning batch carries its prompts and the steps to take on them.

    It begins with the weights that `model` has. `kernel`: auto until there are prompts, then tile or eager.
    """

    def __init__(
        self,
        model: Transformer,
        law: Law,
        settings: LoopConfig,
        spec: OptimizerSpec,
        seeds: Sequence[int],
        dtype: torch.dtype | None = None,
        kernel: str = "eager",
    ) -> None:
        super().__init__()
        dtype = dtype or next(model.parametrization.parameters()).dtype
        self.automatic_optimization = False
        self.model, self.law, self.spec, self.seeds = model, law, spec, tuple(seeds)
        self.settings = settings
        self.coordinates = Coordinates(settings.maps(model, law), dtype)
        self.trained = nn.ParameterDict(self.coordinates.parameters_of(model.parametrization.matrices()))
        alone = [law.replica(r) for r in range(len(seeds))] if spec.needs_per_replica_step else []
        made = [make_estimator(settings.estimator, model, of).to(dtype) for of in (law, *alone)]
        self._estimators = nn.ModuleList(made)  # moves with the module
        self.microbatches, self.reliability = made[0].pieces, made[0].reliability
        risks: list[Risk] = [estimator.risk for estimator in made]
        self.estimate, *self.estimate_replica = risks
        self._fused: Callable[..., Tensor] | None = None  # the estimate through icl.kernel
        self.kernel = kernel
        self.clip_R, self.total_steps = settings.clip_for(len(seeds)), settings.steps
        self.trained_on = "cpu"
        self.reliable: Mapping[str, Tensor] = {}  # of the prompts in use
        self.measured: dict[str, Tensor] = {}  # (R,) by name, since prompts were last drawn
        self.row_steps: Collection[int] = ()  # at which a run records a row; none: it is no run
        self.depth: int | None = None  # number of layers in use; None: all
        self.prompts_of: Sequence[int] | None = None  # replicas that share prompts, see PromptStream
        self.prompt_source: tuple[Transformer, Law, Sequence[int]] = model, law, self.seeds
        self.snapshot: WeightsSnapshot
        self._last_draw: dict[str, Tensor] | None = None  # where validation may stop the training
        if self.coordinates.mapped:  # DDP expects a gradient of every parameter that may have one
            model.parametrization.requires_grad_(False)

    @functools.cached_property
    def exact_risk(self) -> RiskFunction | None:
        return self.law.exact_risk(self.model)

    @functools.cached_property
    def observables(self) -> Observables:
        return self.law.observe(self.model)

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
        stacks = {name: self.trained[name] for name in self.model.parametrization.shapes()}
        self.replicas = ReplicaOptimizer(self.spec, stacks, self.clip_R)
        return self.replicas.optimizer

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint |= {"kernel": self.kernel, "threads": torch.get_num_threads()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the kernel and the number of threads, on which every rounding depends."""
        self.kernel = checkpoint["kernel"]
        torch.set_num_threads(checkpoint["threads"])

    def use_layers(self, depth: int) -> None:
        """Train the first `depth` layers from the next prompts on. The others are not computed."""
        self.depth = depth
        if self._fused is not None:  # the kernel has recorded another stack
            self.estimate, self._fused = self._estimators[0].risk, None  # type: ignore[assignment]

    def prompts(self, first_step: int = 0, share: tuple[int, int] = (0, 1), **more: Any) -> PromptStream:
        """Return the stream from this step on; `share`: rank and number of processes."""
        model, law, seeds = self.prompt_source
        estimator = make_estimator(self.settings.estimator, model, law)
        given = estimator, seeds, self.settings, self.trained_dtype, first_step, share
        return PromptStream(*given, prompts_of=self.prompts_of, **more)

    def train_dataloader(self) -> DataLoader:
        """Return the prompts of the steps that are left to take, this process's share of each set."""
        trainer: Any = self.trainer
        share = trainer.global_rank, trainer.world_size
        stages = [one.stage_law for one in trainer.callbacks if isinstance(one, RunCallback)]
        pinned = trainer.strategy.root_device.type == "cuda"
        counted = trainer.fit_loop.epoch_loop.batch_progress.total.processed
        more = {"stages": stages, "pinned": pinned, "sets_taken": counted}
        return DataLoader(self.prompts(trainer.global_step, share, **more), batch_size=None)

    def val_dataloader(self) -> DataLoader:
        """Return one batch of prompts that training never sees, the same each time."""
        with torch.inference_mode(False):  # what a law keeps may be differentiated later
            generators = [generator(seed, "eval") for seed in self.seeds]
            draw = make_estimator(self.settings.estimator, self.model, self.law).draw(
                generators, self.settings.batch or 0
            )
        batch: Any = [PromptSet((), {name: tensor.to(self.trained_dtype) for name, tensor in draw.items()})]
        return DataLoader(batch, batch_size=None)

    # Lightning passes over a hook that is no function.
    on_before_backward: Any = None
    on_after_backward: Any = None

    def on_train_start(self) -> None:
        self.total_steps = self.settings.steps
        callbacks: list[pl.Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        self._on_weights, self._on_step_end = (
            [getattr(callback, name) for callback in callbacks if hasattr(callback, name)]
            for name in ("on_weights", "on_step_end")
        )

    def training_step(self, batch: PromptSet, _: int) -> None:
        draw, taken = batch.draw, self.trainer.global_step
        steps = [step for step in batch.steps if step >= taken]
        if not steps:  # a further epoch, or prompts that were given and used before
            self.trainer.should_stop = taken >= self.total_steps
            return
        if self.estimate is not self._fused:
            self._choose_kernel(draw)
        self.reliable = self.reliability(draw)
        step_fn = self._step_each(draw) if self.spec.needs_per_replica_step else self._step_all(draw)
        for step in steps:
            self.replicas.set_rates(step)
            step_fn(step)
            for hook in self._on_step_end:
                hook(self.trainer, self, step + 1)
        if step + 1 == self.total_steps:
            self._publish(self.total_steps, self._over_processes(lambda: self._loss(draw)))
            self.trainer.should_stop = True  # a further epoch would be of the same prompts
        self._last_draw = draw if self.trainer.enable_validation else None
        self._log_means()

    def _log_means(self) -> None:
        """Log means over seeds with a finite loss, once for each set of prompts: of the loss and of what was
        measured since the last. `step` is where loggers put them, and what callbacks log."""
        measured, self.measured = self.measured, {}
        loss_R = self.snapshot.loss_R
        sound_R = torch.isfinite(loss_R)
        means = {name: float(value_R[sound_R].mean()) for name, value_R in measured.items()}
        trainer: Any = self.trainer
        by_callbacks = trainer.callback_metrics.keys() - {"loss", *means}
        self.log_dict(means, logger=False)  # they are logged at their own steps
        self.log("loss", float(loss_R[sound_R].mean()), logger=not self.row_steps)  # or with a run's rows
        if by_callbacks or not self.row_steps:
            self.log("step", float(trainer.global_step))

    def validation_step(self, batch: PromptSet, _: int) -> None:
        """`val_loss`: the mean over the seeds of the risk on prompts that training never sees."""
        with torch.inference_mode(False), torch.no_grad():
            risk_R = self.risk(batch.draw)
        sound_R = risk_R[torch.isfinite(risk_R)]
        self.log("val_loss", sound_R.double().mean(), batch_size=1)

    def on_train_end(self) -> None:
        """Show the last weights of a training that was stopped early. Assert that all processes have the
        same."""
        draw, self._last_draw = self._last_draw, None
        if draw is not None and self.trainer.global_step > self.snapshot.step:
            self.total_steps = self.trainer.global_step
            self._publish(self.total_steps, self._over_processes(lambda: self._loss(draw)))
        if self.trainer.world_size > 1:
            strategy: Any = self.trainer.strategy
            own = torch.cat([stack.detach().cpu().flatten() for stack in self.trained.values()])
            if not strategy.reduce_boolean_decision(torch.equal(own, strategy.broadcast(own))):
                raise RuntimeError(f"the weights differ between the {self.trainer.world_size} processes")

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
            self.microbatches = lambda draw: [(1.0, draw)]
            self.kernel = "tile"
        except NotRecordable as reason:
            if self.kernel == "tile":
                begun = "a run keeps its kernel; force=true starts it again"
                raise InputError(f"trainer.kernel=tile: {reason} ({begun})") from reason
            self.kernel = "eager"

    def _step_all(self, draw: dict[str, Tensor]) -> Callable[[int], None]:
        pieces = self.microbatches(draw)
        optimizer: Any = self.optimizers()

        def step_fn(step: int) -> None:
            self.replicas.clear_gradients()
            losses = []
            for share, piece in pieces:
                loss_R = self.estimate(self._model(), piece) * share
                self.manual_backward(loss_R.sum())
                losses.append(loss_R.detach())
            self._publish(step, self._over_processes(lambda: torch.stack(losses).sum(0)))
            self.replicas.attach_gradients()
            optimizer.step()

        return step_fn

    def _step_each(self, draw: dict[str, Tensor]) -> Callable[[int], None]:
        """Step each replica by its own L-BFGS, one after another: one optimizer would couple them."""
        by_replica = self.replicas.optimizer
        optimizer: Any = self.optimizers()
        assert isinstance(by_replica, PerReplicaOptimizer)
        pieces_R = [self.microbatches(own) for own in self._of_each(draw)]

        def closure() -> float:
            r, total = by_replica.current_replica, 0.0
            by_replica.optimizers[r].zero_grad()
            for share, piece in pieces_R[r]:
                model = self._model(self.replicas.views[r], r)
                loss = self.estimate_replica[r](model, piece).sum() * share
                self.manual_backward(loss)
                total += loss.item()
            return total

        def step_fn(step: int) -> None:
            self._publish(step, lambda: self._loss(draw))
            optimizer.step(closure)

        return step_fn

    def _of_each(self, draw: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Return each replica's prompts, as an ensemble of one."""
        return [{name: t[r : r + 1] for name, t in draw.items()} for r in range(len(self.seeds))]

    def _loss(self, draw: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            return self.estimate(self._model(), draw)

    def risk(self, draw: dict[str, Tensor]) -> Tensor:
        """Return the risk of each replica on these prompts, computed without the kernel."""
        found: Tensor = self._estimators[0].risk(self._model(), draw)  # type: ignore[operator]
        return found

    def _over_processes(self, loss_R: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """Return the mean loss of all processes, which all of them have to ask for."""
        if self.trainer.world_size == 1:
            return loss_R
        mean_R = self.trainer.strategy.reduce(loss_R(), reduce_op="mean")
        return lambda: mean_R

    def _publish(self, step: int, loss_R: Callable[[], Tensor]) -> None:
        self.snapshot = WeightsSnapshot(self, step, loss_R)
        for hook in self._on_weights:
            hook(self.trainer, self, step)
        self.measured |= self.snapshot.measured
