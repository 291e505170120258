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

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import LinearLayer, layer_of, symmetric_products
from icl.checks.ahn.support.linear_layer_tokens import held_to_tokens, paths_errors
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    FAMILIES,
    judge_rows,
    require_family,
    require_law,
    single_layer,
)
from icl.checks.sequential import KINDS, Comparison
from icl.checks.settings import in_range
from icl.checks.token_evidence import affordable_context
from icl.checks.verdict import Bound, Control, Finding, Weights, combine, decide
from icl.random import generator
from icl.theory.closed_forms import isotropic_step, theorem1_preconditioner

MAX_DIM = 50
TOO_LARGE = "the fourth moments take (dim + 1)^4 numbers"
UNRESOLVED = "undecided: the form's rank is below its dimension in float64, at this context"
GRADIENT = (
    "rounding: 2^-52 times the terms of a sum and the condition of (6)'s inverse, times the sizes of those "
    "terms for whitened tokens"
)
RISK = (
    "rounding, of the bound and at a point: |gradient / 2|^2 over the form's least eigenvalue, plus 2^-52 "
    "times the number and size of its terms"
)
PATHS = "rounding: 2^-52 times a prediction's additions and products, as a share of its terms"
UNIQUE = (
    'The proofs call the minimiser of Lemmas 2 and 3 "unique": only its symmetric part is. G is '
    "symmetric, so X + t (E_{d+1,j} - E_{j,d+1}) has the same loss on every prompt."
)


@dataclass(eq=False)
class Theorem1(PromptSettings):
    """Settings: of the prompts."""

    reference = "Theorem 1, eqs. (6) and (7); Lemmas 2 and 3"
    claim = "Eq. (6) minimises the loss of a single linear attention layer over all P and Q, for any Sigma."

    claim_of_weights = "These weights are at eq. (6), up to P <- gamma P, Q <- Q / gamma."

    def __post_init__(self) -> None:
        in_range("check.dim", self.dim, 1, MAX_DIM, TOO_LARGE)
        super().__post_init__()
        self.token_context = affordable_context(self.context, self.dim)

    def measure(self) -> Finding:
        Sigma, N = self.law.Sigma_RDD[0], self.context
        layer, isotropic = LinearLayer(Sigma, N), LinearLayer(torch.eye(self.dim, dtype=torch.float64), N)
        A_DD, A7_DD = theorem1_preconditioner(Sigma, N), isotropic_step(self.dim, N) * isotropic.Sigma
        claim, claim7 = layer_of(A_DD), layer_of(A7_DD)
        risk, risk7 = layer.at(*claim)[0], isotropic.at(*claim7)[0]
        held, paths = self._held_to_tokens()
        measured = {
            "optimal_risk": layer.least_risk,
            "risk_at_claim": risk,
            "gradient_norm": layer.at_whitened(*layer.whiten(*claim))[1],
            "risk_gap": abs(risk - layer.least_risk),
            "rescaling_change": layer.rescaling_change(*claim),
            "eq7_gradient_norm": isotropic.at_whitened(*isotropic.whiten(*claim7))[1],
            "eq7_risk_gap": abs(risk7 - isotropic.least_risk),
            "lemma3_gradient_norm": self._lemma3_gradient(),
            "lemma3_antisymmetric_change": self._antisymmetric_change(),
            "condition": layer.optimum.condition,
            **{name: error for name, (error, _) in paths.items()},
            **{k: v for prefix, found in held.items() for k, v in found.measured(prefix).items()},
        }
        slope, slope7 = layer.gradient_rounding(A_DD), isotropic.gradient_rounding(A7_DD)
        bounds = [
            Bound(slope, GRADIENT, "gradient_norm"),
            Bound(slope, GRADIENT, "lemma3_gradient_norm"),
            Bound(slope7, GRADIENT, "eq7_gradient_norm"),
            Bound(layer.risk_rounding, RISK, "risk_gap"),
            Bound(layer.risk_rounding, RISK, "rescaling_change"),
            Bound(isotropic.risk_rounding, RISK, "eq7_risk_gap"),
            *(Bound(bound, PATHS, name) for name, (_, bound) in paths.items()),
        ]
        verdict, bound = combine(
            [(decide(measured[bound.of], bound.value), bound) for bound in bounds]
            + [found.condition(prefix) for prefix, found in held.items()]
            + [("holds" if layer.resolved else "undecided", bounds[3])]
        )
        # (6) without the trace term, which is what corrects for the finite context: A' = N / (N + 1) I.
        _, control = layer.at_whitened(*layer_of(N / (N + 1) * isotropic.Sigma))
        _, slight = layer.at_whitened(*layer.whiten(*layer_of((1 + 1e-10) * A_DD)))  # must be seen, too
        return Finding(
            verdict,
            measured,
            bound,
            Control(
                "gradient norm at eq. (6) with the trace term dropped", control, min(control, slight) > slope
            ),
            self._notes(layer),
            [UNIQUE],
            kinds={"*": "exact", "*paths_error": "tried", "lemma3_antisymmetric_change": "tried", **KINDS},
        )

    def judge(self, weights: Weights) -> Finding:
        """Are these weights at eq. (6), up to gamma and to entries that do not enter the loss?"""
        law = weights.regression("Theorem 1")
        require_family(weights, "Theorem 1", list(FAMILIES))
        require_law(law, "Theorem 1", {"w ~ N(0, I)": law.Sigma_w_RDD})
        in_range("check.weights: their dimension", law.dim, 1, MAX_DIM, TOO_LARGE)
        P_RPP, Q_RPP = single_layer(weights, "Theorem 1")
        layers = [LinearLayer(*problem) for problem in zip(law.Sigma_RDD, law.context_R, strict=True)]
        return judge_rows(
            [_row(*seed) for seed in zip(layers, P_RPP, Q_RPP, strict=True)],
            [_row(*seed) for seed in zip(layers, P_RPP, Q_RPP / 2, strict=True)],
            Bound(
                DISTANCE,
                "distance |X - X of (6)| / |X of (6)|, the tolerance of ahn's figures; and the exact risk "
                f"within {EXCESS:.0%} of the optimum",
                "distance",
            ),
            "distance of the same weights with Q halved",
        )

    def _held_to_tokens(self) -> tuple[dict[str, Comparison], dict[str, tuple[float, float]]]:
        """The form of the risk against drawn prompts; what the library's paths make of such prompts."""
        law, rng = replace(self.law, context_R=(self.token_context,)), generator(self.seed, "check", 1)
        A_DD = theorem1_preconditioner(law.Sigma_RDD[0], self.token_context)
        return held_to_tokens(law, A_DD, rng), paths_errors(law, rng)

    def _notes(self, layer: LinearLayer) -> list[str]:
        notes = [] if layer.resolved else [UNRESOLVED]
        if self.token_context < self.context:
            text = f"held to tokens at context {self.token_context}: longer prompts are too dear"
            notes.append(f"The risk's formula is {text}.")
        return notes

    def _lemma3_gradient(self) -> float:
        """Norm of the gradient of sum_j lambda_j f_j at Lemma 3's X_j, in Sigma's eigenbasis."""
        eigenvalues_D, N = torch.linalg.eigvalsh(self.law.Sigma_RDD[0]), self.context
        A_DD = (1 / ((N + 1) / N * eigenvalues_D + eigenvalues_D.sum() / N)).diag()
        return LinearLayer(eigenvalues_D.diag(), N).component_gradient(A_DD)

    def _antisymmetric_change(self) -> float:
        """On drawn prompts, the largest change of <G, X_j> along E_{d+1,j} - E_{j,d+1}."""
        G_BPP = self.law.gram_prompts([generator(self.seed, "check")], 64).gram_RBPP[0]
        return float((G_BPP[:, -1, :-1] - G_BPP[:, :-1, -1]).abs().max())


def _row(layer: LinearLayer, P_PP: Tensor, Q_PP: Tensor) -> dict[str, float]:
    risk, gradient_norm = layer.at(P_PP, Q_PP)
    X_DPP = symmetric_products(P_PP, Q_PP)
    claim_DPP = symmetric_products(*layer_of(theorem1_preconditioner(layer.Sigma, layer.context)))
    return {
        "distance": float((X_DPP - claim_DPP).norm() / claim_DPP.norm()),
        "risk_excess": risk / layer.least_risk - 1,
        "gradient_norm": gradient_norm,
        "risk": risk,
        "optimal_risk": layer.least_risk,
    }
