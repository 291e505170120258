"""The contract of a task: what training, checks and readers use of it, and nothing more.

A task is what a user states; `task.law(seeds)` is the distribution of its prompts, one for each of R
replicas. A class fulfils the contract by having these members; `icl.tasks.TokenLaw` has them all, but
for how tokens are drawn. Nothing here or in icl.training knows which task it is.

R replicas, B prompts, N context tokens, P token width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from torch import Tensor, nn

from icl.tasks.prompts import GramPrompt, TokenPrompt

Generators = Sequence[np.random.Generator]  # one per replica
Draw = dict[str, Tensor]
CACHE_BYTES = 1 << 20  # a tensor of this size, and the few made from it, stay in a core's cache


class Family(Protocol):
    """The part of icl.models.Parametrization, which weights of a model are free, that laws use."""

    dim: int
    layers: int
    sparse: bool  # of eq. (11) or (8)
    with_b: bool  # of eq. (11): B is free
    mask: bool  # whether the query is left out of the sums

    def shapes(self) -> dict[str, tuple[int, ...]]: ...

    def matrices(self) -> dict[str, Tensor]: ...

    def sharing(self, parameters: Sequence[Tensor]) -> Self: ...

    def stack(self) -> tuple[Tensor, Tensor]: ...

    def io_maps(self) -> tuple[Tensor | None, Tensor | None]: ...

    def columns(self, gram_RPPB: Tensor, query_RPKB: Tensor) -> Tensor: ...

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]: ...


class Model(Protocol):
    """The part of a model (icl.models.LinearTransformer) that laws use."""

    path: str  # tokens | gram: which prompts it is trained on
    activation: str

    @property
    def parametrization(self) -> Any: ...  # a Family

    def on(self, parametrization: Any) -> Self:
        """Return the same model with other weights."""

    def predict(self, prompt: Any) -> Tensor:
        """Return predictions, (R, B), in the sign of the labels."""

    def last_entry(self, gram_RPPB: Tensor, query_RPB: Tensor) -> Tensor: ...

    def risk_given_gram(self, *drawn: Tensor, read_out: int) -> Tensor: ...

    def risk_given_task(self, *drawn: Tensor, read_out: int) -> Tensor: ...


RiskFunction = Callable[[Any], Tensor]  # a model's (R,) risk


class Estimator(nn.Module, ABC):
    """A sample of prompts (`draw`), and the risk that is left to compute given it (`risk`).

    A module, so that its constants move with the model.
    """

    prompt_axis = -1  # of every tensor of a draw
    piece_bytes = CACHE_BYTES  # of the largest tensor of a piece

    @abstractmethod
    def draw(self, generators: Generators, batch: int) -> Draw:
        """`batch` prompts a replica: tensors in float64 on the CPU."""

    @abstractmethod
    def risk(self, model: Any, draw: Draw) -> Tensor:
        """One number per replica."""

    reliability_names: tuple[str, ...] = ()

    def reliability(self, draw: Draw) -> Mapping[str, Tensor]:
        """(R,) numbers by these names that say how far the mean over this draw can be trusted."""
        return {}

    @property
    def plain(self) -> Estimator | None:
        """The same risk from the law's own draws, where this estimator's are others."""
        return None

    def pieces(self, draw: Draw) -> list[tuple[float, Draw]]:
        """Return the draw cut along its prompts into (share, part) that a CPU's cache holds: the risk of the
        whole is the sum of share * risk of the part. Measured: half the time at 5 x 20,000 prompts."""
        batch = next(iter(draw.values())).shape[self.prompt_axis]
        largest = max(tensor.nbytes for tensor in draw.values())
        on_cpu = all(tensor.device.type == "cpu" for tensor in draw.values())
        count = min(batch, round(largest / self.piece_bytes)) if on_cpu else 1
        if count <= 1:
            return [(1.0, draw)]
        cuts = [batch * i // count for i in range(count + 1)]
        return [
            (
                (stop - start) / batch,
                {k: v.narrow(self.prompt_axis, start, stop - start).contiguous() for k, v in draw.items()},
            )
            for start, stop in pairwise(cuts)
        ]


class Observables(Protocol):
    """Numbers of the weights that runs of a law record, besides loss, risk and gradient."""

    def names(self) -> Sequence[str]:
        """Columns of metrics.csv, fixed before the first step."""

    def at(self, model: Any) -> Mapping[str, Tensor]:
        """(R,) numbers by name; the model is in float64 on the CPU."""


class DrawsPrompts(Protocol):
    """How prompts come, from one generator per replica."""

    @property
    def read_out(self) -> int:
        """The prediction is read_out * (last entry of the query token)."""

    def token_prompts(self, generators: Generators, batch: int) -> TokenPrompt:
        """Prompts token by token: this defines the law."""

    def gram_prompts(self, generators: Generators, batch: int) -> GramPrompt:
        """Prompts of the same distribution, seen through their Gram matrices."""


class Law(DrawsPrompts, Protocol):
    """The prompts of R replicas."""

    @property
    def dim(self) -> int: ...

    @property
    def context_R(self) -> tuple[int, ...]: ...

    def replica(self, r: int) -> Law:
        """Return the law of one replica alone."""

    def encode(self, x_RBND: Tensor, y_RBN: Tensor, x_query_RBD: Tensor) -> TokenPrompt:
        """Return prompts of this law from given covariates and labels; their targets are unknown (nan)."""

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        """Estimators of this model's risk by name (`train.estimator`), the least variance first."""

    def exact_risk(self, model: Any) -> RiskFunction | None:
        """Return the risk of any weights of this model under this law, (R,), differentiable and without
        sampling error; None where there is no such form. It is `exact_risk` in a run's metrics, and what
        train.estimator=population descends."""

    @property
    def exact_where(self) -> str:
        """The models that have an exact risk, in words."""

    def coordinates(self, model: Any) -> Mapping[str, tuple[Tensor, Tensor]]:
        """Return, for train.coordinates=whitened, (left_RII, right_RJJ) by matrix: M = left M' right, with
        M' what is trained. Empty where the law has none for this model."""

    def observe(self, model: Any) -> Observables:
        """Return what runs of this model record."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return what a run stores of its law, the replica axis first. Where there is a `Sigma`, pictures
        show A in the coordinates in which it is the identity; with `free_W_V` and `free_W_QK`, masks, they
        show P and Q as W_V = P^T and W_QK = Q^T with these entries outlined."""


class Task(Protocol):
    """The class that `task._target_` names."""

    @property
    def dim(self) -> int:
        """Dimension that a model is built for: tokens have dim + 1 entries."""

    def law(self, seeds: Sequence[int]) -> Law: ...
