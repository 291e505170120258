"""Which weights are free: maps from parameters to the (P, Q) stack of linear attention.

R replicas, L layers, H heads, D covariates, P = D + 1 token width. Every parameter is a stack of matrices
with leading axes (R, L), (R, L, H) or (R, 1); the trainer clips, logs and draws matrix by matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from icl.errors import InputError, real, reals, whole
from icl.models.batched import from_left
from icl.models.gram import stack_output
from icl.random import generator

MAX_LAYERS = 64


class Parametrization(nn.Module, ABC):
    """Shared by all: sizes, i.i.d. Gaussian initialisation per seed, and names of the matrices."""

    sparse: ClassVar[bool] = False  # of eq. (8) or (11)
    with_b: ClassVar[bool] = False  # of eq. (11): B is free
    mask: bool = True  # whether the query is left out of the sums, as a key

    def __init__(self, dim: int, layers: int = 3, init_std: float | Sequence[float] = 1e-4) -> None:
        super().__init__()
        self.dim = whole("task.dim", dim, 1)
        self.layers = whole("model.layers", layers, 1, MAX_LAYERS)
        if isinstance(init_std, Sequence) and not isinstance(init_std, str):
            self.init_std: float | list[float] = reals("model.init_std", init_std, len(init_std), 0)
        else:
            self.init_std = real("model.init_std", init_std, 0)

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter name -> shape without the replica axis."""

    def initialise(self, seeds: Sequence[int], dtype: torch.dtype = torch.float64) -> None:
        """Replica r's weights are a function of seeds[r] alone."""
        stds = self.init_std if isinstance(self.init_std, list) else [self.init_std] * len(seeds)
        if len(stds) != len(seeds):
            raise InputError(f"model.init_std={stds}: has {len(stds)} entries for {len(seeds)} seeds")
        streams = [generator(seed, "init") for seed in seeds]
        for name, shape in self.shapes().items():
            draws = [std * rng.standard_normal(shape) for std, rng in zip(stds, streams, strict=True)]
            setattr(self, name, nn.Parameter(torch.from_numpy(np.stack(draws)).to(dtype)))

    def load(self, matrices: dict[str, Tensor]) -> None:
        """Take given weights (with a replica axis) instead of random ones."""
        for name, shape in self.shapes().items():
            if name not in matrices or tuple(matrices[name].shape[1:]) != shape:
                found = tuple(matrices[name].shape) if name in matrices else "nothing"
                raise InputError(
                    f"weights {name}: must have shape (seeds, {', '.join(map(str, shape))}), got {found}"
                )
            setattr(self, name, nn.Parameter(matrices[name].clone()))

    def sharing(self, parameters: Sequence[Tensor]) -> Self:
        """The same family on other parameters, not copied."""
        other = type(self).__new__(type(self))
        other.__dict__ = self.__dict__ | {"_parameters": dict(zip(self.shapes(), parameters, strict=True))}
        return other

    def matrices(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in self.shapes()}

    @abstractmethod
    def stack(self) -> tuple[Tensor, Tensor]:
        """(P_RLHPP, Q_RLHPP)."""

    def ends(self) -> tuple[Tensor | None, Tensor | None]:
        """(read_in_RPP, output_RP): what is done to the query token before the stack, and which combination
        of its entries is read after it. None: nothing, and the last entry."""
        return None, None

    def embedded(self, z_XP: Tensor) -> Tensor:
        """Tokens along the last axis, as the stack reads them."""
        return z_XP

    def columns(self, gram_RPPB: Tensor, query_RPKB: Tensor) -> Tensor:
        """What the stack makes of query columns of each prompt, read out: (R, K, B)."""
        (P, Q), (read_in_RPP, output_RP) = self.stack(), self.ends()
        if read_in_RPP is not None:
            query_RPKB = from_left(read_in_RPP, query_RPKB)
        return stack_output(P, Q, gram_RPPB, query_RPKB, output_RP)

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        """(A, B) in the sign of eq. (11), for the sparse families."""
        raise TypeError(f"{type(self).__name__} is not sparse")


class SparseA(Parametrization):
    """Eq. (8): P = [[0, 0], [0, 1]], Q = -[[A, 0], [0, 0]]."""

    sparse = True
    A: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"A": (self.layers, self.dim, self.dim)}

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        return -self.A, None

    def stack(self) -> tuple[Tensor, Tensor]:
        return sparse_stack(*self.sparse_weights())


class SparseAB(Parametrization):
    """Eq. (11): P = [[B, 0], [0, 1]], Q = [[A, 0], [0, 0]]. The last B has no effect and is left out."""

    sparse = with_b = True
    A: Tensor
    B: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {"A": (self.layers, self.dim, self.dim)}
        if self.layers > 1:
            found["B"] = (self.layers - 1, self.dim, self.dim)
        return found

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        return self.A, self.B if self.layers > 1 else None

    def stack(self) -> tuple[Tensor, Tensor]:
        return sparse_stack(*self.sparse_weights())


class MultiHead(Parametrization):
    """H heads with free P_h and Q_h in every layer; their updates add up."""

    P: Tensor
    Q: Tensor

    def __init__(
        self, dim: int, layers: int = 1, heads: int = 2, init_std: float | Sequence[float] = 1e-4
    ) -> None:
        super().__init__(dim, layers, init_std)
        self.heads = whole("model.heads", heads, 1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = (self.layers, self.heads, self.dim + 1, self.dim + 1)
        return {"P": size, "Q": size}

    def stack(self) -> tuple[Tensor, Tensor]:
        return self.P, self.Q


class Full(Parametrization):
    """Eqs. (3)-(4): one head with free P and Q in every layer."""

    P: Tensor
    Q: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = (self.layers, self.dim + 1, self.dim + 1)
        return {"P": size, "Q": size}

    def stack(self) -> tuple[Tensor, Tensor]:
        return self.P[:, :, None], self.Q[:, :, None]


class YqLSA(Full):
    """xie eqs. (11)-(12): one head, and a trained initial guess y_q = <v, x_q> in the query token."""

    v: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return super().shapes() | {"v": (1, 1, self.dim)}

    def ends(self) -> tuple[Tensor | None, Tensor | None]:
        identity_PP = torch.eye(self.dim + 1, dtype=self.v.dtype, device=self.v.device)
        guess_RPP = torch.nn.functional.pad(self.v[:, 0], (0, 1, self.dim, 0))  # v^T below zeros
        return identity_PP + guess_RPP, None


class LinearTransformerBlock(Full):
    """xie eq. (30): one head, then a linear MLP; the prediction is the last entry of W2^T W1 z.

    Only the last row of W2^T W1 enters: its first D entries are an initial guess that needs no y_q.
    """

    W1: Tensor
    W2: Tensor

    def __init__(
        self, dim: int, layers: int = 1, hidden: int = 1, init_std: float | Sequence[float] = 1e-4
    ) -> None:
        super().__init__(dim, layers, init_std)
        self.hidden = whole("model.hidden", hidden, 1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = (1, self.hidden, self.dim + 1)
        return super().shapes() | {"W1": size, "W2": size}

    def ends(self) -> tuple[Tensor | None, Tensor | None]:
        return None, (self.W2[:, 0, :, -1:].mT @ self.W1[:, 0])[:, 0]


def sparse_stack(A_RLDD: Tensor, B_RLDD: Tensor | None) -> tuple[Tensor, Tensor]:
    """The (P, Q) stack of eq. (11); layers beyond B's have B = 0."""
    R, L, D, _ = A_RLDD.shape
    P_RLHPP = A_RLDD.new_zeros(R, L, 1, D + 1, D + 1)
    Q_RLHPP = A_RLDD.new_zeros(R, L, 1, D + 1, D + 1)
    P_RLHPP[..., D, D] = 1
    if B_RLDD is not None:
        P_RLHPP[:, : B_RLDD.shape[1], 0, :D, :D] = B_RLDD
    Q_RLHPP[:, :, 0, :D, :D] = A_RLDD
    return P_RLHPP, Q_RLHPP
