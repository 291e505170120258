"""The exact risk of weights given as arrays."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from icl.errors import InputError
from icl.models.attention import LinearTransformer
from icl.models.parametrizations import MultiHead, SparseA
from icl.tasks.linear_regression import LinearRegression


def exact_risk(P: ArrayLike | Tensor, Q: ArrayLike | Tensor, **task: Any) -> float:
    """Return the exact risk of linear attention with these P and Q: (p, p) of one layer, (L, p, p), or (L,
    H, p, p) with heads.

    `task` are the settings of icl.tasks.LinearRegression; the dim is p - 1, and Sigma is diag(eigenvalues)
    where no covariance is given.
    """
    P_LHPP, Q_LHPP = _stack("P", P), _stack("Q", Q)
    if P_LHPP.shape != Q_LHPP.shape:
        raise InputError(f"Q: has shape {tuple(np.shape(Q))}, must have that of P, {tuple(np.shape(P))}")
    dim = P_LHPP.shape[-1] - 1
    if task.get("dim", dim) != dim:
        raise InputError(f"dim={task['dim']}: must be {dim}, since P has {dim + 1} rows")
    try:
        law = LinearRegression(**({"rotation": "none", "prefix": "exact_risk"} | task | {"dim": dim})).law(
            [0]
        )
    except TypeError as error:
        raise InputError(f"exact_risk: {error}") from None
    model = LinearTransformer(_family(P_LHPP, Q_LHPP))
    risk = law.exact_risk(model)
    if risk is None:
        raise InputError(
            f"exact_risk: no exact form for these weights and this law; there is one for {law.exact_where}"
        )
    return float(risk(model)[0])


def _stack(name: str, given: ArrayLike | Tensor) -> Tensor:
    array = np.asarray(given, dtype=np.float64)
    if (
        array.ndim not in (2, 3, 4)
        or array.shape[-1] != array.shape[-2]
        or array.shape[-1] < 2
        or not array.size
    ):
        raise InputError(f"{name}: has shape {array.shape}, must be (p, p), (L, p, p) or (L, H, p, p)")
    if not np.isfinite(array).all():
        raise InputError(f"{name}: every entry must be a finite number")
    width = array.shape[-1]
    heads = array.shape[1] if array.ndim == 4 else 1
    return torch.from_numpy(array.reshape(-1, heads, width, width).copy())


def _family(P_LHPP: Tensor, Q_LHPP: Tensor) -> MultiHead | SparseA:
    """Return the family: eq. (8) where the stack has its form, which has an exact risk at more depths."""
    layers, heads, width = P_LHPP.shape[:3]
    reads = torch.zeros(width, width, dtype=torch.float64)
    reads[-1, -1] = 1
    if (
        heads == 1
        and torch.equal(P_LHPP, reads.expand_as(P_LHPP))
        and not Q_LHPP[..., -1, :].any()
        and not Q_LHPP[..., -1].any()
    ):
        sparse = SparseA(width - 1, layers)
        sparse.load({"A": -Q_LHPP[None, :, 0, :-1, :-1]})
        return sparse.requires_grad_(False)
    free = MultiHead(width - 1, layers, heads)
    free.load({"P": P_LHPP[None], "Q": Q_LHPP[None]})
    return free.requires_grad_(False)
