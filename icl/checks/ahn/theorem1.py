"""ahn, Theorem 1: the best single layer of linear attention, x ~ N(0, Sigma), w ~ N(0, I).

Eq. (6), P = [[0, 0], [0, 1]] and Q = -[[A, 0], [0, 0]] with A = ((N + 1)/N Sigma + tr(Sigma)/N I)^{-1},
minimises the in-context loss over all P and Q, up to P <- gamma P, Q <- Q / gamma.

Measured: the gradient at (6), and its exact risk against the least value of a convex form in which every
P and Q has its place; the same for eq. (7), Sigma = I; and Lemma 3, column by column of Q.

R seeds, D covariates, N = `context` tokens, P = D + 1 token width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.checks.ahn.linear_layer import LinearLayer, layer_of, symmetric_products
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    FAMILIES,
    judge_rows,
    require_family,
    require_law,
    single_layer,
)
from icl.checks.settings import Eigenvalues, Matrix, law_of, limited
from icl.checks.verdict import Bound, Control, Finding, Weights, decide
from icl.random import generator
from icl.theory.closed_forms import isotropic_step, theorem1_preconditioner
from icl.verdicts import joint

MAX_DIM = 50
TOO_LARGE = "the fourth moments take (dim + 1)^4 numbers"
ILL_CONDITIONED = "undecided: Sigma is too ill-conditioned, the form's rank is below its dimension in float64"
UNIQUE = (
    'The proofs call the minimiser of Lemmas 2 and 3 "unique": only its symmetric part is. G is '
    "symmetric, so X + t (E_{d+1,j} - E_{j,d+1}) has the same loss on every prompt."
)


class Theorem1:
    """Settings: dimension, context length, eigenvalues or covariance of x, seed of the eigenvectors."""

    reference = "Theorem 1, eqs. (6) and (7); Lemmas 2 and 3"
    claim = "Eq. (6) minimises the loss of a single linear attention layer over all P and Q, for any Sigma."

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        eigenvalues: Eigenvalues = None,
        covariance: Matrix = None,
        seed: int = 0,
    ) -> None:
        self.dim, self.context, self.seed = limited("check.dim", dim, 1, MAX_DIM, TOO_LARGE), context, seed
        self.law = law_of(dim, context, seed, eigenvalues=eigenvalues, covariance=covariance)

    def measure(self) -> Finding:
        Sigma, N = self.law.Sigma_RDD[0], self.context
        layer, isotropic = LinearLayer(Sigma, N), LinearLayer(torch.eye(self.dim, dtype=torch.float64), N)
        A_DD, A7_DD = theorem1_preconditioner(Sigma, N), isotropic_step(self.dim, N) * isotropic.Sigma
        risk, gradient = layer.at(*layer_of(A_DD))
        risk7, gradient7 = isotropic.at(*layer_of(A7_DD))
        gap, gap7 = risk - layer.optimum.value, risk7 - isotropic.optimum.value
        rescaled = layer.rescaling_change(*layer_of(A_DD))
        lemma3 = self._lemma3_gradient()
        measured = {
            "optimal_risk": layer.optimum.value,
            "risk_at_claim": risk,
            "gradient_norm": gradient,
            "risk_gap": gap,
            "risk_rounding": layer.risk_rounding,
            "rescaling_change": rescaled,
            "eq7_risk_gap": gap7,
            "eq7_gradient_norm": gradient7,
            "lemma3_gradient_norm": lemma3,
            "lemma3_antisymmetric_change": self._antisymmetric_change(),
            "condition": layer.optimum.condition,
        }
        bound = layer.gradient_rounding(A_DD)
        verdicts = [
            decide(gradient, bound),
            decide(lemma3, bound),
            decide(gradient7, isotropic.gradient_rounding(A7_DD)),
            decide(max(abs(gap), rescaled), layer.risk_rounding),
            decide(abs(gap7), isotropic.risk_rounding),
            "holds" if layer.resolved else "undecided",
        ]
        # (6) without the trace term, which is what corrects for the finite context.
        _, control = layer.at(*layer_of(torch.linalg.inv((N + 1) / N * Sigma)))
        return Finding(
            joint(verdicts),
            measured,
            Bound(
                bound,
                "rounding of gradient_norm: 2^-52 times the terms of a sum and the condition of (6)'s "
                "inverse, times 2 tr(Sigma) E|G|^2 |X| (|P| + |Q|), the size of those terms; risk_gap is "
                "held against risk_rounding",
            ),
            Control("gradient norm at eq. (6) with the trace term dropped", control, control > bound),
            notes=[] if layer.resolved else [ILL_CONDITIONED],
            remarks=[UNIQUE],
        )

    def judge(self, weights: Weights) -> Finding:
        """Are these weights at eq. (6), up to gamma and to entries that do not enter the loss?"""
        law = weights.law
        require_family(weights, "Theorem 1", list(FAMILIES))
        require_law(law, "Theorem 1", {"w ~ N(0, I)": law.Sigma_w_RDD})
        limited("check.weights: their dimension", law.dim, 1, MAX_DIM, TOO_LARGE)
        P_RPP, Q_RPP = single_layer(weights, "Theorem 1")
        layers = [LinearLayer(*problem) for problem in zip(law.Sigma_RDD, law.context_R, strict=True)]
        return judge_rows(
            [_row(*seed) for seed in zip(layers, P_RPP, Q_RPP, strict=True)],
            [_row(*seed) for seed in zip(layers, P_RPP, Q_RPP / 2, strict=True)],
            Bound(
                DISTANCE,
                "distance |X - X of (6)| / |X of (6)|, the tolerance of ahn's figures; and the exact risk "
                f"within {EXCESS:.0%} of the optimum",
            ),
            "distance of the same weights with Q halved",
        )

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
        "risk_excess": risk / layer.optimum.value - 1,
        "gradient_norm": gradient_norm,
        "risk": risk,
        "optimal_risk": layer.optimum.value,
    }
