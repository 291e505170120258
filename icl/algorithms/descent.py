"""Gradient descent on the prompt's least squares R(w) = (1/2N) sum_i (<w, x_i> - y_i)^2 from w = 0.

R replicas, B prompts, L steps, D covariates.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.algorithms.coordinates import moments, per_replica, whitening
from icl.errors import InputError, real, whole
from icl.tasks.prompts import GramPrompt, TokenPrompt

StepSizes = float | Sequence[float] | Tensor


class GradientDescent:
    """`layers` steps w <- w - eta_l Sigma^{-1} grad R(w); without `Sigma_RDD` the plain gradient.

    `eta` is one number for all steps, L numbers, or a tensor (R, L) or (R, 1) with each replica's own.
    ahn, Lemma 1: this is what the stack (8) with A_l = eta_l Sigma^{-1} computes.
    """

    def __init__(self, eta: StepSizes, layers: int, Sigma_RDD: Tensor | None = None) -> None:
        self.eta_RL = _step_sizes("algorithm.eta", eta, whole("algorithm.layers", layers, 1))
        self.root_RDD = whitening(Sigma_RDD)

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        S_RBDD, g_RBD, x_RBD = moments(prompt, self.root_RDD)
        eta_LR11 = per_replica("eta", self.eta_RL, len(x_RBD)).mT[..., None, None]
        w_RBD = eta_LR11[0] * g_RBD
        for eta_R11 in eta_LR11[1:]:
            w_RBD = w_RBD - eta_R11 * (_apply(S_RBDD, w_RBD) - g_RBD)
        return (w_RBD * x_RBD).sum(-1)


def chebyshev_steps(low: float, high: float, layers: int) -> list[float]:
    """Step sizes whose L steps shrink the error most, in the worst case over a spectrum in [low, high].

    Their inverses are the roots of Chebyshev's polynomial T_L moved to [low, high] (Young 1953; Golub and
    Varga 1961); the error shrinks by the factor T_L((high + low) / (high - low)). In exact arithmetic their
    order does not matter; in Leja's order (Reichel 1991) no partial product grows large, whatever L is.
    """
    low = real("algorithm.low", low, 0, open_low=True)
    high = real("algorithm.high", high, low)
    whole("algorithm.layers", layers, 1)
    angles_L = (2 * np.arange(layers) + 1) * np.pi / (2 * layers)
    return [float(1 / root) for root in _leja((high + low) / 2 + (high - low) / 2 * np.cos(angles_L))]


def _leja(roots_L: np.ndarray) -> list[float]:
    """Each time the root farthest, by product of distances, from those before and from 0."""
    left, chosen = list(roots_L), []
    logs = np.log(roots_L)
    while left:
        best = int(np.argmax(logs))
        chosen.append(left.pop(best))
        with np.errstate(divide="ignore"):  # low = high: all roots are equal
            logs = np.delete(logs, best) + np.log(np.abs(np.array(left) - chosen[-1]))
    return chosen


def _apply(S_RBDD: Tensor, v_RBD: Tensor) -> Tensor:
    return (S_RBDD * v_RBD[..., None, :]).sum(-1)


def _step_sizes(key: str, sizes: StepSizes, count: int) -> Tensor:
    """(1, count) or (R, count)."""
    tensor = torch.as_tensor(sizes, dtype=torch.float64)
    if not bool(torch.isfinite(tensor).all()):
        raise InputError(f"{key}: every step size must be a finite number")
    per_step = tensor.ndim in (1, 2) and tensor.shape[-1] == count
    if not (per_step or tensor.ndim == 0 or (tensor.ndim == 2 and tensor.shape[1] == 1)):
        raise InputError(
            f"{key}: has shape {tuple(tensor.shape)}, must be a number, ({count},), (R, {count}) or (R, 1)"
        )
    rows = tensor if tensor.ndim == 2 else tensor.expand(count)[None]
    return rows.expand(-1, count)
