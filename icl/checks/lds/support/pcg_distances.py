"""Distances of the layer of pattern (13) from two steps of conjugate gradients and from one gradient step.

B sequences, s window, P = s + 1 token width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from icl import quantiles
from icl.algorithms import ConjugateGradient, GradientDescent
from icl.checks.lds.support.pcg_layer import PcgLayer
from icl.checks.lds.support.population import Population
from icl.checks.numbers import Numbers, of_kind, sampled, second
from icl.checks.sequential import ALPHA, Sample, mean_of
from icl.checks.verdict import Route
from icl.tasks.dynamical_system import gram_prompts
from icl.theory.dynamical_system import coefficients, half_squared_error


def best_step_size(population: Population) -> float:
    """Return the size of one gradient step at which its risk is least."""
    step_KS = _step(population.law.window)
    return float((population.moments.linear_KS * step_KS).sum()) / _mean_square(population, step_KS)


def risks(population: Population, head: tuple[Tensor, Tensor], eta: float, y_RBT: Tensor) -> list[Numbers]:
    """Return the risks of the layer and of one gradient step of the best size; of simulated sequences too."""
    part, kind, layer_KS = population.moments, population.kind, coefficients(*head)
    prompt = gram_prompts(y_RBT, population.law.window)
    layer_B = (PcgLayer(*head, prompt.gram_RBPP[0]).predictor() * prompt.query_RBP[0, :, :-1]).sum(-1)
    drawn = [
        mean_of((predicted_B - prompt.target_RB[0]).square() / 2)
        for predicted_B in (layer_B, GradientDescent(eta, 1).predict(prompt)[0])
    ]
    name = f"Monte Carlo on tokens, {len(layer_B):,} sequences"

    def again(risk: float, drawn: Sample) -> Route | None:
        return second(name, risk, drawn.mean, drawn.stderr) if population.exact else None

    of_layer = float(half_squared_error(part, layer_KS))
    of_step = float(half_squared_error(part, eta * _step(population.law.window)))
    return [
        of_kind(kind, risk_layer=of_layer)
        .means("population risk of the layer")
        .confirmed(risk_layer=again(of_layer, drawn[0])),
        of_kind(kind, risk_gd=of_step)
        .means("population risk of one gradient step")
        .confirmed(risk_gd=again(of_step, drawn[1])),
        sampled(gd_step_size=eta).means("step size of least risk of one gradient step"),
    ]


def _step(window: int) -> Tensor:
    """Return a gradient step of size 1 as coefficients of a head."""
    entry_PP = torch.eye(window + 1, dtype=torch.float64)
    return coefficients(entry_PP[-1], entry_PP[:window])


def distances_from_layer(
    population: Population, y_RBT: Tensor, head: tuple[Tensor, Tensor], eta: float
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return median distances of the layer's predictions from other methods', with their intervals."""
    window = population.law.window
    prompt = gram_prompts(y_RBT, window)
    layer = PcgLayer(*head, prompt.gram_RBPP[0])
    out_B = (layer.predictor() * prompt.query_RBP[0, :, :window]).sum(-1)
    size = _mean_square(population, coefficients(*head)) ** 0.5
    others: dict[str, ConjugateGradient | GradientDescent] = {
        "pcg": ConjugateGradient(2, layer.P_DD, layer.q_D),
        "gd": GradientDescent(eta, 1),
        "plain_cg": ConjugateGradient(2),
    }
    shares = {name: (method.predict(prompt)[0] - out_B).abs() / size for name, method in others.items()}
    return (
        {name: float(share_B.median()) for name, share_B in shares.items()},
        {name: median_interval(share_B, ALPHA / 2) for name, share_B in shares.items()},
    )


def median_interval(values_B: Tensor, alpha: float) -> list[float]:
    """Return [low, high] between two order statistics, which the median of any law is outside of in at most
    this share of samples."""
    B = len(values_B)
    below = quantiles.fair_coin(alpha / 2, B)  # fewer lie below the median with at most alpha / 2
    if below < 1:
        return [0.0, math.inf]
    sorted_B = values_B.sort().values
    return [float(sorted_B[below - 1]), float(sorted_B[B - below])]


def _mean_square(population: Population, x_KS: Tensor) -> float:
    """Return E[y_hat^2]."""
    return float(torch.einsum("ks,kslr,lr->", x_KS, population.moments.form_KSKS, x_KS))
