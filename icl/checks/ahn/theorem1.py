"""ahn, Theorem 1: the best single layer of linear attention, x ~ N(0, Sigma), w ~ N(0, I).

Eq. (6), P = [[0, 0], [0, 1]] and Q = -[[A, 0], [0, 0]] with A = ((N + 1)/N Sigma + tr(Sigma)/N I)^{-1},
minimises the in-context loss over all P and Q, up to P <- gamma P, Q <- Q / gamma.

Measured: the gradient at (6), and its exact risk against the least value of a convex form in which every
P and Q has its place; the same for eq. (7), Sigma = I; and Lemma 3, column by column of Q. Gradients are
those of whitened tokens (icl.checks.ahn.support.linear_layer). The form itself is compared with prompts
drawn as tokens, at weights of eq. (8) and at others, and so are the library's own Wishart draws and its
two paths.

R seeds, B prompts, D covariates, N = `context` tokens, P = D + 1 token width, L = H = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.judge_layers import judge_layers
from icl.checks.ahn.support.linear_layer import GRADIENT, RISK, SCALES, LinearLayer, layer_of
from icl.checks.ahn.support.linear_layer_tokens import numbers_on_tokens
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.differences import DIFFERENCES
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer
from icl.checks.task_rule import BY_TASKS, risk_by_tasks
from icl.checks.verdict import Control, Finding, Weights
from icl.random import generator
from icl.theory.closed_forms import (
    isotropic_risk,
    isotropic_step,
    theorem1_preconditioner,
    theorem1_risk,
)
from icl.theory.quadratic import EPSILON
from icl.verdicts import ROUTE_ROUNDING

DIMS = (1, 50, "the fourth moments take (dim + 1)^4 numbers")
DROPPED = "gradient norm at eq. (6) without its trace term"
UNRESOLVED = (
    "undecided: at this context length rounding in float64 hides the rank of the quadratic form; a "
    "shorter one (check.context) is decided."
)
UNIQUE = (
    'The proofs call the minimiser of Lemmas 2 and 3 "unique", but only its symmetric part is unique: G is '
    "symmetric, so X + t (E_{d+1,j} - E_{j,d+1}) has the same loss on every prompt."
)


@dataclass(eq=False)
class Theorem1(PromptSettings):
    """Settings: of the prompts."""

    dim: int = integer(5, *DIMS)

    reference = "Theorem 1, eqs. (6) and (7); Lemmas 2 and 3"
    claim = (
        "For every covariance Sigma of x and w ~ N(0, I), eq. (6) is a global minimum of the population "
        "risk of one layer of linear attention, over all P and Q."
    )
    claim_of_weights = "These weights are at eq. (6), up to P <- gamma P, Q <- Q / gamma."

    def measure(self) -> Finding:
        Sigma, N = self.law.Sigma_RDD[0], self.context
        layer, isotropic = LinearLayer(Sigma, N), LinearLayer(torch.eye(self.dim, dtype=torch.float64), N)
        A_DD, A7_DD = theorem1_preconditioner(Sigma, N), isotropic_step(self.dim, N) * isotropic.Sigma
        claim, claim7 = layer_of(A_DD), layer_of(A7_DD)
        risk, risk7 = layer.at(*claim)[0], isotropic.at(*claim7)[0]
        slope, slope7 = layer.gradient_rounding(A_DD), isotropic.gradient_rounding(A7_DD)
        rng, closed = generator(self.seed, "check", 2), float(theorem1_risk(Sigma, N))
        of_risk = max(risk, layer.risk_rounding / ROUTE_ROUNDING)
        gap, gap7 = abs(risk - layer.least_risk), abs(risk7 - isotropic.least_risk)
        # (6) without the trace term, which is what corrects for the finite context: A' = N / (N + 1) I.
        _, untraced = layer.at_whitened(*layer_of(N / (N + 1) * isotropic.Sigma))
        _, slight = layer.at_whitened(*layer.whiten(*layer_of((1 + 1e-10) * A_DD)))  # must be seen, too
        on_tokens, cut = numbers_on_tokens(self.law, generator(self.seed, "check", 1))
        return finding(
            [
                exact(gradient_norm=layer.whitened_gradient(*claim))
                .means("norm of the gradient of the exact risk at eq. (6), for whitened tokens")
                .also_by(DIFFERENCES, gradient_norm=layer.by_differences(*claim, rng), size=slope / EPSILON)
                .at_most(slope, GRADIENT),
                exact(lemma3_gradient_norm=layer.lemma3_gradient())
                .means("norm of the gradient of the form of Lemma 3 at its X_j, for whitened tokens")
                .also_by(
                    "differences of the form's values",
                    lemma3_gradient_norm=layer.lemma3_gradient(rng),
                    size=slope / EPSILON,
                )
                .at_most(slope, GRADIENT),
                exact(eq7_gradient_norm=isotropic.whitened_gradient(*claim7))
                .means("norm of the gradient of the exact risk at eq. (7), Sigma = I")
                .also_by(
                    DIFFERENCES,
                    eq7_gradient_norm=isotropic.by_differences(*claim7, rng),
                    size=slope7 / EPSILON,
                )
                .at_most(slope7, GRADIENT),
                exact(risk_gap=gap)
                .means("difference of the risk at eq. (6) and the least value of the convex form, absolute")
                .also_by("the closed form for the least value", risk_gap=abs(risk - closed), size=of_risk)
                .at_most(layer.risk_rounding, RISK)
                .holds_only_if(layer.resolved),
                exact(rescaling_change=layer.rescaling_change(*claim))
                .means("largest change of the risk at eq. (6) under P <- gamma P, Q <- Q / gamma")
                .also_by(BY_TASKS, rescaling_change=self._rescaling_change(*claim), size=of_risk)
                .at_most(layer.risk_rounding, RISK),
                exact(eq7_risk_gap=gap7)
                .means("difference of the risk at eq. (7) and the least value of the convex form, Sigma = I")
                .also_by(
                    "the closed form for the least value",
                    eq7_risk_gap=abs(risk7 - isotropic_risk(self.dim, N)),
                    size=max(risk7, isotropic.risk_rounding / ROUTE_ROUNDING),
                )
                .at_most(isotropic.risk_rounding, RISK),
                *on_tokens,
                exact(optimal_risk=layer.least_risk, risk_at_claim=risk)
                .means(
                    optimal_risk="least value of the convex form, a lower bound for all P and Q",
                    risk_at_claim="exact risk at eq. (6)",
                )
                .also_by(
                    "the closed form of the least risk",
                    optimal_risk=closed,
                    risk_at_claim=closed,
                    size=of_risk,
                ),
                exact(condition=layer.optimum.condition)
                .means("condition number of the quadratic form, for whitened tokens")
                .also_by(
                    "norms of the form and of its inverse",
                    condition=layer.condition_by_norms(),
                    size=_size_of_condition(layer),
                ),
                tried(lemma3_antisymmetric_change=self._antisymmetric_change()).means(
                    "largest change of <G, X_j> on drawn prompts along E_{d+1,j} - E_{j,d+1}"
                ),
            ],
            Control(DROPPED, untraced, min(untraced, slight) > slope),
            notes=[*([] if layer.resolved else [UNRESOLVED]), *cut],
            remarks=[UNIQUE],
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare weights with eq. (6), up to gamma and to entries that do not enter the loss."""
        return judge_layers(weights, DIMS)

    def _rescaling_change(self, P_PP: Tensor, Q_PP: Tensor) -> float:
        """Return the most by which P <- gamma P, Q <- Q / gamma changes the risk, once more."""
        risks = [risk_by_tasks(self.law, s * P_PP[None], Q_PP[None] / s) for s in (1.0, *SCALES)]
        return max(abs(risk - risks[0]) for risk in risks)

    def _antisymmetric_change(self) -> float:
        """Return the largest change, on drawn prompts, of <G, X_j> along E_{d+1,j} - E_{j,d+1}."""
        G_BPP = self.law.gram_prompts([generator(self.seed, "check")], 64).gram_RBPP[0]
        return float((G_BPP[:, -1, :-1] - G_BPP[:, :-1, -1]).abs().max())


def _size_of_condition(layer: LinearLayer) -> float:
    """Return the size whose rounding the condition number has; none is known where the rank is not full."""
    return layer.optimum.condition**2 * EPSILON / ROUTE_ROUNDING if layer.resolved else math.inf
