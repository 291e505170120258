"""Which weights are free: maps from parameters to the (P, Q) stack of linear attention.

R replicas, L layers, H heads, D covariates, P = D + 1 token width.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from icl.errors import InputError, one_of, whole
from icl.models import tokens
from icl.models.batched import left_matmul
from icl.models.gram import stack_output
from icl.models.matrices import MAX_LAYERS, Matrices

PATHS = ("gram", "tokens")


class Parametrization(Matrices):
    """Weights of linear attention, which `LinearTransformer` evaluates by this path and activation."""

    mask: bool = True  # whether the query is left out of the sums, as a key

    def __init__(
        self,
        dim: int,
        layers: int = 3,
        init_std: float | Sequence[float] = 1e-4,
        path: str = "gram",
        activation: str = "identity",
    ) -> None:
        super().__init__(dim, layers, init_std)
        self.path = one_of("model.path", path, PATHS)
        self.activation = one_of("model.activation", activation, tokens.ACTIVATIONS)

    @abstractmethod
    def stack(self) -> tuple[Tensor, Tensor]:
        """(P_RLHPP, Q_RLHPP)."""

    def io_maps(self) -> tuple[Tensor | None, Tensor | None]:
        """(read_in_RPP, output_RP): what is done to the query token before the stack, and which combination
        of its entries is read after it. None: nothing, and the last entry."""
        return None, None

    def embedded(self, z_XP: Tensor) -> Tensor:
        """Tokens along the last axis, as the stack reads them."""
        return z_XP

    def columns(self, gram_RPPB: Tensor, query_RPKB: Tensor) -> Tensor:
        """Return what the stack makes of query columns of each prompt, read out: (R, K, B)."""
        (P, Q), (read_in_RPP, output_RP) = self.stack(), self.io_maps()
        if read_in_RPP is not None:
            query_RPKB = left_matmul(read_in_RPP, query_RPKB)
        return stack_output(P, Q, gram_RPPB, query_RPKB, output_RP)

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        """Return (A, B) in the sign of eq. (11), for the sparse families."""
        raise TypeError(f"{type(self).__name__} is not sparse")


class Sparse(Parametrization):
    """Families whose layers have a matrix A, and B. `shared`: one layer is applied `layers` times."""

    sparse = True

    def __init__(
        self,
        dim: int,
        layers: int = 3,
        init_std: float | Sequence[float] = 1e-4,
        path: str = "gram",
        activation: str = "identity",
        shared: bool = False,
    ) -> None:
        super().__init__(dim, layers, init_std, path, activation)
        if not isinstance(shared, bool):
            raise InputError(f"model.shared={shared}: must be true or false")
        self.shared = shared

    def stack(self) -> tuple[Tensor, Tensor]:
        return sparse_stack(*self.sparse_weights())

    def looped(self, loops: int) -> Self:
        """Return the same shared layer, applied `loops` times."""
        if not self.shared:
            raise InputError(f"loops={loops}: needs a layer that is shared, model.shared=true")
        other = self.sharing(list(self.matrices().values()))
        other.layers = whole("loops", loops, 1, MAX_LAYERS)
        return other

    def _size(self, layers: int) -> tuple[int, int, int]:
        return 1 if self.shared else layers, self.dim, self.dim

    def _by_layer(self, M_RLDD: Tensor, layers: int) -> Tensor:
        return M_RLDD.expand(-1, layers, -1, -1)  # of the one that is shared, or of all


class SparseA(Sparse):
    """Eq. (8): P = [[0, 0], [0, 1]], Q = -[[A, 0], [0, 0]]."""

    A: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"A": self._size(self.layers)}

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        return self._by_layer(-self.A, self.layers), None


class SparseAB(Sparse):
    """Eq. (11): P = [[B, 0], [0, 1]], Q = [[A, 0], [0, 0]]. The last B has no effect and is left out."""

    with_b = True
    A: Tensor
    B: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {"A": self._size(self.layers)}
        if self.layers > 1:
            found["B"] = self._size(self.layers - 1)
        return found

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        A_RLDD = self._by_layer(self.A, self.layers)
        return A_RLDD, self._by_layer(self.B, self.layers - 1) if self.layers > 1 else None


class MultiHead(Parametrization):
    """H heads with free P_h and Q_h in every layer; their updates add up."""

    P: Tensor
    Q: Tensor

    def __init__(
        self,
        dim: int,
        layers: int = 1,
        heads: int = 2,
        init_std: float | Sequence[float] = 1e-4,
        path: str = "gram",
        activation: str = "identity",
    ) -> None:
        super().__init__(dim, layers, init_std, path, activation)
        self.heads = whole("model.heads", heads, 1, 1024)

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

    def io_maps(self) -> tuple[Tensor | None, Tensor | None]:
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
        self,
        dim: int,
        layers: int = 1,
        hidden: int = 1,
        init_std: float | Sequence[float] = 1e-4,
        path: str = "gram",
        activation: str = "identity",
    ) -> None:
        super().__init__(dim, layers, init_std, path, activation)
        self.hidden = whole("model.hidden", hidden, 1, 65536)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = (1, self.hidden, self.dim + 1)
        return super().shapes() | {"W1": size, "W2": size}

    def io_maps(self) -> tuple[Tensor | None, Tensor | None]:
        return None, (self.W2[:, 0, :, -1:].mT @ self.W1[:, 0])[:, 0]


class ReducedLSA(Parametrization):
    """lu, one layer: with read_out -1 the prediction is x^T Gamma h, h = [(D/n) sum_i y_i x_i ; (1/n) sum_i
    y_i^2], x the query and n the context: P = [[0, 0], [0, 1]], Q = -[[D Gamma_1^T, 0], [Gamma_2^T, 0]]."""

    Gamma: Tensor

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"Gamma": (self.layers, self.dim, self.dim + 1)}

    def stack(self) -> tuple[Tensor, Tensor]:
        R, L, D, _ = self.Gamma.shape
        P_RLHPP = self.Gamma.new_zeros(R, L, 1, D + 1, D + 1)
        Q_RLHPP = self.Gamma.new_zeros(R, L, 1, D + 1, D + 1)
        P_RLHPP[..., D, D] = 1
        Q_RLHPP[:, :, 0, :D, :D] = -D * self.Gamma[..., :D].mT
        Q_RLHPP[:, :, 0, D, :D] = -self.Gamma[..., D]
        return P_RLHPP, Q_RLHPP


def looped(family: Matrices, loops: int) -> Sparse:
    """Return the family's shared layer, applied `loops` times."""
    if not isinstance(family, Sparse):
        raise InputError(f"loops={loops}: needs sparse_a or sparse_ab with model.shared=true")
    return family.looped(loops)


def sparse_stack(A_RLDD: Tensor, B_RLDD: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the (P, Q) stack of eq. (11); layers beyond B's have B = 0."""
    R, L, D, _ = A_RLDD.shape
    P_RLHPP = A_RLDD.new_zeros(R, L, 1, D + 1, D + 1)
    Q_RLHPP = A_RLDD.new_zeros(R, L, 1, D + 1, D + 1)
    P_RLHPP[..., D, D] = 1
    if B_RLDD is not None:
        P_RLHPP[:, : B_RLDD.shape[1], 0, :D, :D] = B_RLDD
    Q_RLHPP[:, :, 0, :D, :D] = A_RLDD
    return P_RLHPP, Q_RLHPP
