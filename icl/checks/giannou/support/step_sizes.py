"""Searches for the step sizes of the family A_l, B_l ~ I. B spectra, D covariates, L layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.giannou.support import unmasked_attention as attention

MOST_LAYERS = 6  # of the masked stack, too, which must come below the floor
SIGMAS = 3.2905  # of a two-sided 99.9 % interval
SEARCHED = 2000  # spectra on which step sizes are searched; risks are of all

Risk = Callable[[Tensor, Tensor], Tensor]  # of g and the spectra


def risks_by_layers(spectra_BD: Tensor, risk: Risk, layers: int, below: float | None = None) -> list[Tensor]:
    """Return risks at the best step sizes found for 1 to L layers, each from the last.

    With `below` as many layers more as it takes to get below that.
    """
    found: list[Tensor] = []
    few_BD, theta = spectra_BD[:SEARCHED], np.zeros(0)
    for count in range(1, MOST_LAYERS + 1):
        arrived = below is None
        if below is not None and found:
            arrived = float(found[-1].mean()) + SIGMAS * attention.stderr(found[-1]) < below
        if count > layers and arrived:
            break
        starts = [_one_more(theta, count, beta) for beta in (0.1, 0.6, 1.2)]
        results = [_minimise(start, few_BD, count, risk) for start in starts]
        theta = min(results, key=lambda result: result[0])[1]
        found.append(risk(attention.response(torch.from_numpy(theta), spectra_BD, count), spectra_BD))
    return found


def _one_more(theta: np.ndarray, layers: int, beta: float) -> np.ndarray:
    """Return a start: the step sizes of one layer less, and one more of about the same size."""
    if layers == 1:
        return np.array([beta, 1.0])
    a, betas, c = theta[: layers - 1], theta[layers - 1 : -1], theta[-1:]
    return np.concatenate([a, a[-1:], betas, [beta * abs(a[-1])], c])


def _minimise(start: np.ndarray, spectra_BD: Tensor, layers: int, risk: Risk) -> tuple[float, np.ndarray]:
    def value_and_gradient(values: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(values, requires_grad=True)
        loss = risk(attention.response(theta, spectra_BD, layers), spectra_BD).mean()
        (gradient,) = torch.autograd.grad(loss, theta)
        return float(loss.detach()), gradient.numpy()

    with np.errstate(all="ignore"):
        result = minimize(value_and_gradient, start, jac=True, method="BFGS", options={"maxiter": 200})
    return (float(result.fun) if np.isfinite(result.fun) else np.inf), result.x
