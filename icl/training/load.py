"""A finished run's law and model, made again from its config: the one place where that is done.

R replicas, B prompts, N context tokens, D covariates.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from icl.config.objects import instantiate, target_class
from icl.config.search_path import require_known
from icl.errors import InputError, Unavailable
from icl.models import LinearTransformer, Transformer
from icl.models.parametrizations import looped
from icl.runs import record
from icl.runs.record import RunRecord
from icl.tasks.law import Law, Task

if TYPE_CHECKING:
    import pandas

_OTHER_LAW = 1e-9  # relative; rounding moves a stored covariance by dim * 2e-16 at most


def law_and_model(
    task_node: Mapping[str, Any], node: Mapping[str, Any], seeds: Sequence[int]
) -> tuple[Law, Transformer]:
    """Build the law and the model of a training config's task and model; the model has no weights yet."""
    task: Task = instantiate("task", task_node)
    for name in ("dim", "law"):
        if not hasattr(task, name):
            wanted = "must be a task: something with dim and law(seeds), see icl.tasks.law"
            raise InputError(f"task._target_={task_node['_target_']}: {wanted}")
    takes = inspect.signature(target_class("model", node.get("_target_"))).parameters
    rest = {k: node[k] for k in ("path", "activation") if k in node and k not in takes}
    model = instantiate("model", {k: v for k, v in node.items() if k not in rest}, dim=task.dim)
    return task.law(seeds), model if isinstance(model, Transformer) else LinearTransformer(model, **rest)


class Predictor(nn.Module):
    """A trained model that reads covariates and labels: `model(x, y, x_query)`.

    A module like any other: it is differentiable in what it reads, `.float()` and `.to(device)` move it, and
    torch.export and torch.jit.trace take it.
    """

    def __init__(self, model: Transformer, law: Law) -> None:
        super().__init__()
        self.model, self._law = model, law

    def forward(
        self,
        x: ArrayLike | Tensor,
        y: ArrayLike | Tensor,
        x_query: ArrayLike | Tensor,
        loops: int | None = None,
    ) -> Tensor:
        """Predictions in the sign of the labels, one row for each seed: (R, B) of B prompts x (B, N, D),
        y (B, N), x_query (B, D), and (R,) of one prompt x (N, D), y (N,), x_query (D,). `loops`: how often a
        shared layer (model.shared=true) is applied; as in training, if not given."""
        given = [self._read(value) for value in (x, y, x_query)]
        one, D = given[0].ndim == 2, self._law.dim
        x_BND, y_BN, x_query_BD = (value[None] for value in given) if one else given
        B, N = y_BN.shape if y_BN.ndim == 2 else (0, 0)
        for name, value, shape in (("x", x_BND, (B, N, D)), ("x_query", x_query_BD, (B, D))):
            if tuple(value.shape) != shape:
                found = tuple(np.shape(value[0] if one else value))
                wanted = "x (N, d), y (N,), x_query (d,), or a batch of these"
                raise InputError(f"{name}: has shape {found}, must be of {wanted}, with d = {D}")
        R = len(self._law.context_R)
        shared = [value[None].expand(R, *value.shape) for value in (x_BND, y_BN, x_query_BD)]
        model = self.model if loops is None else self.model.on(looped(self.model.parametrization, loops))
        predicted_RB = model.predict(self._law.encode(*shared))
        return predicted_RB[:, 0] if one else predicted_RB

    def _read(self, value: ArrayLike | Tensor) -> Tensor:
        """Return a tensor in the precision and on the device of the weights."""
        weight = next(self.model.parameters())
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value, dtype=np.float64))
        return tensor.to(weight.device, weight.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class TrainedRun(RunRecord):
    """A finished training run with its law and its model.

    `.model(x, y, x_query)` predicts on anybody's data with the final weights of every seed; `.law` draws
    prompts and has the exact risk of `.transformer`, if that is known.
    """

    @functools.cached_property
    def _made(self) -> tuple[Law, Transformer]:
        if not {"task", "model"} <= set(self.config):
            raise InputError(f"{self.path}: is no training run: its config has no task and model")
        for group in ("task", "model"):
            require_known(group, self.config[group])
        law, model = law_and_model(self.config["task"], self.config["model"], self.run["seeds"])
        self._require_same(law)
        return law, model

    @property
    def law(self) -> Law:
        """The prompts it was trained on."""
        return self._made[0]

    @functools.cached_property
    def matrices(self) -> dict[str, np.ndarray]:
        """The final weights by name."""
        return {name: self._array(name) for name in self._made[1].parametrization.shapes()}

    @functools.cached_property
    def transformer(self) -> Any:
        """The final weights as a model of the run's class, in float64."""
        return self.with_weights(self.matrices)

    @functools.cached_property
    def model(self) -> Predictor:
        """A predictor with weights of its own, so that `.float()` leaves `.transformer` in float64."""
        return Predictor(self.with_weights(self.matrices), self.law)

    def with_weights(self, matrices: Mapping[str, np.ndarray]) -> Any:
        """Return the run's model with other weights, in float64."""
        model = self._made[1]
        zeros = [torch.zeros(0)] * len(model.parametrization.shapes())
        family = model.parametrization.sharing(zeros)
        family.load({name: torch.from_numpy(np.array(matrix)).double() for name, matrix in matrices.items()})
        return model.on(family.requires_grad_(False))

    def stored_models(self) -> Iterator[tuple[int, Any]]:
        """(step, model) at the stored steps, the last one included."""
        names = self._made[1].parametrization.shapes()
        for s, step in enumerate(self._array("history_steps").tolist()):
            yield step, self.with_weights({name: self._array(f"{name}_history")[:, s] for name in names})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the metrics as a table: a row for each logged step and seed."""
        try:
            import pandas
        except ImportError:
            raise Unavailable("to_pandas needs pandas: pip install 'icl-theory[notebook]'") from None
        return pandas.DataFrame(self.metrics)

    def _require_same(self, law: Law) -> None:
        """Refuse a law that differs from the stored one: the config may name a .npy file that has changed."""
        made = law.arrays()
        for name in {"Sigma", "Sigma_w"} & set(made) & set(self.weights):
            stored = self.weights[name]
            if np.abs(made[name] - stored).max() > _OTHER_LAW * np.abs(stored).max():
                raise InputError(f"{self.path}: {name} of its config is not the one it was trained with")


def restored(run: RunRecord) -> TrainedRun:
    """Return the record of a training run with its law and its model."""
    return TrainedRun(run.path, run.run)


def load_run(path: str | Path) -> TrainedRun:
    """Load the finished run in folder `path`."""
    return restored(record.load_run(path))
