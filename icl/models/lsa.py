"""giannou's linear self-attention without LayerNorm and clipping, in Gram form.

Eq. (3.1a) is H <- H + sum_h V_h H (K_h H)^T (Q_h H), with no 1/n and no mask. Here, as in the rest of the
house, the Gram matrix is divided by n, which takes n P_h for V_h; so the same weights serve any context. The
tokens (x, y, 1) are read in by a fixed number times the identity: any other linear read-in of full rank is a
change of the basis in which the weights are written. Rows beyond these begin at zero: memory for the
layers.

R replicas, B prompts, L layers, H heads, D covariates, P entries of a token as drawn (D + 1, or D + 2 with
the constant), W `width`, X rows of a head's V, K and Q, K query columns.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from icl.errors import InputError, real, reals, whole
from icl.models.batched import matmul, prompts_at_a_time
from icl.models.gram import stack_output
from icl.models.parametrizations import Parametrization


class LSA(Parametrization):
    """P_h and Q_h free in every head; with `rank` as published, P_h = O_h V_h and Q_h = K_h^T Q_h /
    sqrt(rank) where V_h, K_h and Q_h have `rank` rows. The read-out is trained, and begins at the label's
    entry.

    `mask`: whether the query is left out of the sums; the paper has none. `scalars`: begin, but for the
    noise of `init_std`, at a point of the scalar family A_l = -a_l I, B_l = (beta_l / a_l) I, prediction
    -c times the label's entry: (a_1 .. a_L, beta_1 .. beta_{L-1}, c).
    """

    reads_constant = True
    P: Tensor
    Q: Tensor
    V: Tensor
    K: Tensor
    O: Tensor  # noqa: E741
    o: Tensor

    def __init__(
        self,
        dim: int,
        layers: int = 1,
        heads: int = 4,
        width: int | None = None,
        rank: int | None = None,
        mask: bool = False,
        read_in: float = 1.0,
        scalars: Sequence[float] | None = None,
        init_std: float | Sequence[float] = 0.1,
        path: str = "gram",
        activation: str = "identity",
    ) -> None:
        super().__init__(dim, layers, init_std, path, activation)
        self.heads = whole("model.heads", heads, 1, 64)
        self.width = self.dim + 2 if width is None else whole("model.width", width, self.dim + 2, 1024)
        self.rank = None if rank is None else whole("model.rank", rank, 1, 1024)
        if not isinstance(mask, bool):
            raise InputError(f"model.mask={mask}: must be true or false")
        self.mask = mask
        self.read_in = real("model.read_in", read_in, 0, open_low=True)
        self.scalars = None if scalars is None else reals("model.scalars", scalars, 2 * self.layers)
        if self.scalars is not None and self.rank is not None:
            raise InputError(
                "model.scalars: write P and Q, which model.rank factors: set one of them to null"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        layers = (self.layers, self.heads)
        if self.rank is None:
            found = {name: (*layers, self.width, self.width) for name in "PQ"}
        else:
            found = {name: (*layers, self.rank, self.width) for name in "VKQ"}
            found["O"] = (*layers, self.width, self.rank)
        return found | {"o": (1, 1, self.width)}

    def initialise(self, seeds: Sequence[int], dtype: torch.dtype = torch.float64) -> None:
        super().initialise(seeds, dtype)
        with torch.no_grad():
            if self.scalars is None:
                self.o[..., self.dim] += 1 / self.read_in
                return
            D, L, scale = self.dim, self.layers, self.read_in
            a_L, beta_L, c = self.scalars[:L], [*self.scalars[L:-1], 0.0], self.scalars[-1]
            for layer in range(L):
                self.P[:, layer, 0].diagonal(dim1=1, dim2=2)[:, :D] -= beta_L[layer]
                self.P[:, layer, 0, D, D] -= a_L[layer]
                self.Q[:, layer, 0].diagonal(dim1=1, dim2=2)[:, :D] += 1 / scale**2
            self.o[..., D] -= c / scale

    def factors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return O, V, K and Q of every head, (R, L, H, ...), with P_h = O V and Q_h = K^T Q."""
        if self.rank is None:
            identity = torch.eye(self.width, dtype=self.P.dtype, device=self.P.device).expand_as(self.P)
            return self.P, identity, identity, self.Q
        return self.O, self.V, self.K, self.Q / self.rank**0.5

    def stack(self) -> tuple[Tensor, Tensor]:
        if self.rank is None:
            return self.P, self.Q
        O_RLHWX, V_RLHXW, K_RLHXW, Q_RLHXW = self.factors()
        return O_RLHWX @ V_RLHXW, K_RLHXW.mT @ Q_RLHXW

    def io_maps(self) -> tuple[Tensor | None, Tensor | None]:
        return None, self.o[:, 0, 0]

    def embedded(self, z_XP: Tensor) -> Tensor:
        return nn.functional.pad(self.read_in * z_XP, (0, self._spare(z_XP.shape[-1])))

    def _spare(self, entries: int) -> int:
        if not self.dim < entries <= self.dim + 2:
            raise ValueError(f"tokens have {entries} entries, must have {self.dim + 1}, or one more with a 1")
        return self.width - entries

    def columns(self, gram_RPPB: Tensor, query_RPKB: Tensor) -> Tensor:
        """Return the query columns after every layer, read out: (R, K, B)."""
        if self.rank is not None:
            row_RPB = self.row(gram_RPPB.movedim(-1, 1)).movedim(1, -1)
            return matmul(row_RPB[:, None], query_RPKB)[:, 0]
        spare, scale = self._spare(gram_RPPB.shape[1]), self.read_in
        gram_RWWB = nn.functional.pad(scale**2 * gram_RPPB, (0, 0, 0, spare, 0, spare))
        query_RWKB = nn.functional.pad(scale * query_RPKB, (0, 0, 0, 0, 0, spare))
        return stack_output(self.P, self.Q, gram_RWWB, query_RWKB, self.o[:, 0, 0])

    def row(self, gram_RBPP: Tensor) -> Tensor:
        """Return what the read-out makes of a token z: <row, z>, shape (R, B, P).

        Every token is M z with one W x P matrix M for the prompt, and its Gram matrix M G M^T with G that of
        the tokens as drawn: only M is carried, whose cost grows with W^2 P where that of a W x W Gram matrix
        grows with W^3. Before the first layer M is the same for all prompts; of the last one only what is
        read is computed. Batch axis first: these products are large.
        """
        R, B, P, _ = gram_RBPP.shape
        size = prompts_at_a_time(gram_RBPP, R * P * self.width)
        if size < B:
            return torch.cat([self.row(piece) for piece in gram_RBPP.split(size, dim=1)], dim=1)
        assert self.rank is not None
        W, H, X = self.width, self.heads, self.rank
        o_R11W = self.o
        start_PW = self.embedded(torch.eye(P, dtype=gram_RBPP.dtype, device=gram_RBPP.device))
        M_RBPW = start_PW.expand(R, 1, P, W)  # M^T
        for layer in range(self.layers - 1):
            V_RYW, O_RHWX = self.V[:, layer].reshape(R, H * X, W), self.O[:, layer]
            V_RBPY = gram_RBPP @ self._heads(M_RBPW, V_RYW)
            V_RBHPX = V_RBPY.unflatten(-1, (H, X)).transpose(2, 3)
            moves_RBHPX = self._scores(layer, M_RBPW) @ V_RBHPX
            moves_RBPY = moves_RBHPX.transpose(2, 3).reshape(R, B, P, H * X)
            M_RBPW = M_RBPW + self._heads(moves_RBPY, O_RHWX.transpose(1, 2).reshape(R, W, H * X))
        read_RHW = (o_R11W @ self.O[:, -1] @ self.V[:, -1])[:, :, 0]
        read_RBPH = gram_RBPP @ self._heads(M_RBPW, read_RHW)
        last_RBP = (self._scores(self.layers - 1, M_RBPW) @ read_RBPH.mT[..., None])[..., 0].sum(2)
        return (M_RBPW @ o_R11W.mT)[..., 0] + last_RBP

    def _heads(self, M_RBPW: Tensor, A_RYW: Tensor) -> Tensor:
        """Return A M for every prompt, (R, B, P, Y): one product."""
        R, B, P, W = M_RBPW.shape
        return (M_RBPW.reshape(R, B * P, W) @ A_RYW.mT).view(R, B, P, -1)

    def _scores(self, layer: int, M_RBPW: Tensor) -> Tensor:
        """(Q_h M)^T K_h M / sqrt(rank), shape (R, B, H, P, P)."""
        assert self.rank is not None
        KQ_RYW = torch.cat([self.K[:, layer], self.Q[:, layer]], 1).flatten(1, 2)
        heads_RBPY = self._heads(M_RBPW, KQ_RYW)
        K_RBHPX, Q_RBHPX = heads_RBPY.unflatten(-1, (2, self.heads, -1)).permute(3, 0, 1, 4, 2, 5).unbind(0)
        return Q_RBHPX @ K_RBHPX.mT / self.rank**0.5
