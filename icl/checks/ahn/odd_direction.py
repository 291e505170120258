"""Eq. (11) with one direction u = e_1 apart: A_l = a_l (I - u u^T) + a'_l u u^T and B_l likewise, whitened.

Let 1/eps be the scalar of the last B along u and c eps^2 that of the last A. The last layer reads the
covariates' u-part, (eps u^T + u^T G A) x / eps, twice, so that the risk is a polynomial in eps and c: it goes
through eps = 0, where the last B is infinite and the last A is 0 along u.
Rotations that keep u split all weights into blocks that the Hessian does not mix. One copy of each: `vector`
are the entries (u, v) and (v, u), `symmetric` and `antisymmetric` those of (v, v'), v and v' orthogonal to u;
`family` are the scalars.
M matrices, the A's and then the B's, L layers, B prompts, D covariates, V scalars, X directions of a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from icl.models.ahn.random_starts import WeightedPrompts
from icl.theory.ahn.invariant_risk import PolynomialMinimum

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OddDirection:
    """Scalars of such weights: theta_V holds those of the directions orthogonal to u, by matrix, then those
    along u, with c for the last A and none for the last B."""

    dim: int
    layers: int

    def matrices(self, theta_V: Tensor, eps: float) -> Tensor:
        L, M = self.layers, 2 * self.layers - 1
        others_M, along = theta_V[:M], theta_V[M:]
        along_M = torch.cat(
            [along[: L - 1], along[L - 1 : L] * eps**2, along[L:], along.new_tensor([1 / eps])]
        )
        u_DD = torch.zeros(self.dim, self.dim, dtype=torch.float64)
        u_DD[0, 0] = 1
        rest_DD = torch.eye(self.dim, dtype=torch.float64) - u_DD
        return others_M[:, None, None] * rest_DD + along_M[:, None, None] * u_DD

    def near_s(self, minimum: PolynomialMinimum, c: float) -> Array:
        """Return the scalars of a point of S, with this c."""
        scalars_M = np.concatenate([-minimum.a_L, minimum.b_L])
        return np.concatenate([scalars_M, scalars_M[: self.layers - 1], [c], scalars_M[self.layers : -1]])

    def begin(self, minimum: PolynomialMinimum, prompts: WeightedPrompts, eps: float) -> Array:
        """Return those with the best c for this eps: the risk is quadratic in it."""
        low, middle, high = (self.risk(prompts, self.near_s(minimum, c), eps) for c in (-1, 0, 1))
        return self.near_s(minimum, (low - high) / (2 * (low + high - 2 * middle)))

    def risk(self, prompts: WeightedPrompts, theta_V: Array, eps: float) -> float:
        return float(prompts.terms(self.matrices(torch.from_numpy(theta_V), eps)).mean())

    def fit(self, prompts: WeightedPrompts, theta_V: Array, eps: float) -> Array:
        """Return the best scalars at this eps on these prompts."""
        unit = self.risk(prompts, theta_V, eps)

        def value(point_V: Array) -> tuple[float, Array]:
            variable_V = torch.from_numpy(point_V.copy()).requires_grad_()
            mean = prompts.terms(self.matrices(variable_V, eps)).mean() / unit
            return mean.item(), torch.autograd.grad(mean, variable_V)[0].numpy()

        run = minimize(value, theta_V, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 400})
        return np.asarray(run.x)

    def least_curvature(self, prompts: WeightedPrompts, theta_V: Array, eps: float) -> float:
        """Return the least eigenvalue of the Hessian across the valley, in units in which its diagonal is 1
        or -1: without eps, and without the rotation of u, which changes no risk."""
        M_MDD = self.matrices(torch.from_numpy(theta_V), eps)
        return min(self.least(prompts, M_MDD, block) for block in self.blocks().values())

    def blocks(self) -> dict[str, list[tuple[int, Tensor]]]:
        """Return one copy of the directions of each block: a matrix, and what is added to it."""
        unit_DDDD = torch.eye(self.dim**2, dtype=torch.float64).view(*[self.dim] * 4)
        rest_DD = torch.eye(self.dim, dtype=torch.float64) - unit_DDDD[0, 0]
        units = {"vector": [unit_DDDD[0, 1], unit_DDDD[1, 0]], "family": [rest_DD, unit_DDDD[0, 0]]}
        if self.dim > 2:
            units["symmetric"] = [unit_DDDD[1, 2] + unit_DDDD[2, 1]]
            units["antisymmetric"] = [unit_DDDD[1, 2] - unit_DDDD[2, 1]]
        blocks = {
            name: [(k, unit_DD) for k in range(2 * self.layers - 1) for unit_DD in of_one]
            for name, of_one in units.items()
        }
        blocks["family"].pop()  # eps
        return blocks

    def least(self, prompts: WeightedPrompts, M_MDD: Tensor, block: Sequence[tuple[int, Tensor]]) -> float:
        along_XMDD = torch.zeros(len(block), *M_MDD.shape, dtype=torch.float64)
        for x, (k, unit_DD) in enumerate(block):
            along_XMDD[x, k] = unit_DD

        def risk(t_X: Tensor) -> Tensor:
            return prompts.terms(M_MDD + torch.tensordot(t_X, along_XMDD, 1)).mean()

        hessian_XX = torch.autograd.functional.hessian(risk, torch.zeros(len(block)).double()).numpy()  # type: ignore[no-untyped-call]
        size_X = np.sqrt(np.abs(np.diag(hessian_XX)))
        unit_XX = hessian_XX / np.outer(size_X, size_X)
        turn_DD = torch.zeros_like(M_MDD[0])
        turn_DD[0, 1], turn_DD[1, 0] = 1, -1
        along_XV, turned_V = along_XMDD.flatten(1), (M_MDD @ turn_DD - turn_DD @ M_MDD).flatten()
        tangent_X = size_X * (along_XV @ turned_V / along_XV.square().sum(1)).numpy()
        if tangent_X.any():  # in `vector` alone
            axes_XY = np.linalg.svd(tangent_X[None])[2][1:].T
            unit_XX = axes_XY.T @ unit_XX @ axes_XY
        return float(np.linalg.eigvalsh(unit_XX)[0])
