"""ahn, B.2, the step on which the proof of Theorem 3 rests: at every point of S, for any directions R_i
there are multiples of Sigma^{-1} along which the risk changes as much as along R_i, eq. (28).

R~_i = r_i Sigma^{-1}, r_i = tr(Sigma^{1/2} R_i Sigma^{1/2}) / D; the text prints r_i I. It follows that
the flow dA_i/dt = -tr(Sigma^{1/2} grad_i Sigma^{1/2}) Sigma^{-1}, which stays in S, decreases the risk at
least as fast as the gradient flow, eq. (29): by exactly D times as much. Derivatives by autograd through
words in S.

L layers, D covariates, N = `context` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import finding, tried
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.expected_traces import sparse_a_risk

POINTS = 4
SOURCE = "rounding: 64 eps times d, the condition number of Sigma and the number of layers"


@dataclass(eq=False)
class FlowOnS(PromptSettings):
    """Settings: of the prompts, and layers."""

    dim: int = integer(5, 2, 24, "the risk's words take dim^3 operations each")
    layers: int = integer(2, 1, 3, "the words have 2 L letters")

    reference = "Appendix B.2, eqs. (28) and (29)"
    claim = (
        "At every point of S and for all directions R_i, the risk changes along r_i Sigma^-1, r_i = "
        "tr(Sigma^1/2 R_i "
        "Sigma^1/2) / d, no more than along R_i; the flow inside S decreases it at least as fast as "
        "gradient flow."
    )
    task_covariance = "inverse"

    def measure(self) -> Finding:
        rng, L, D = generator(self.seed, "check"), self.layers, self.dim
        Sigma, inverse = self.law.Sigma_RDD[0], self.law.Sigma_w_RDD[0]
        bound = ROUNDING * D * L * float(torch.linalg.cond(Sigma))
        errors, as_printed, off_S, rates = [], [], [], []
        for _ in range(POINTS):
            a_L, R_LDD = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((L,), (L, D, D)))
            on_S = a_L[:, None, None] * inverse
            gradient_LDD = self._gradient(on_S)
            r_L = torch.einsum("lij,ij->l", R_LDD, Sigma) / D
            along, flat = (r_L[:, None, None] * M for M in (inverse, torch.eye(D, dtype=torch.float64)))
            errors.append(_difference(gradient_LDD, along, R_LDD))
            as_printed.append(_difference(gradient_LDD, flat, R_LDD))
            flow = torch.einsum("lij,ij->l", gradient_LDD, Sigma)[:, None, None] * inverse
            rates.append(float((gradient_LDD * flow).sum() / gradient_LDD.square().sum()))
            turned = on_S + 0.5 * on_S[0].norm() * torch.diag_embed(torch.eye(D, dtype=torch.float64)[0])
            off_S.append(_difference(self._gradient(turned), along, R_LDD))
        return finding(
            [
                tried(derivative_error=max(errors))
                .means("largest difference of the two derivatives at points of S, relative to their terms")
                .at_most(bound, SOURCE),
                tried(rate_error=max(abs(rate / D - 1) for rate in rates))
                .means("largest relative difference from d of the flow's decrease over the squared gradient")
                .at_most(bound, SOURCE),
                tried(derivative_error_as_printed=max(as_printed)).means(
                    "largest such difference along r_i I, as the text prints"
                ),
            ],
            Control("the least such difference at points off S", min(off_S), min(off_S) > bound),
            remarks=[
                "The text prints R_i~ = r_i I; it must be r_i Sigma^-1, as its last lines have it. (28) "
                "and (29) hold "
                "as equalities, the second with the factor d.",
                "The gradient itself is a multiple of Sigma, not of Sigma^-1, so gradient flow leaves S; "
                "only the "
                "flow of the proof stays.",
            ],
        )

    def _gradient(self, A_LDD: Tensor) -> Tensor:
        A_LDD = A_LDD.detach().requires_grad_()
        risk = sparse_a_risk(A_LDD, self.law.Sigma_RDD[0], self.law.Sigma_w_RDD[0], self.context)
        return torch.autograd.grad(risk, A_LDD)[0]


def _difference(gradient_LDD: Tensor, first_LDD: Tensor, second_LDD: Tensor) -> float:
    """Return the difference of the derivatives along both, as a share of the sums of their terms' sizes."""
    size = gradient_LDD.norm() * (first_LDD.norm() + second_LDD.norm())
    return float(((gradient_LDD * (first_LDD - second_LDD)).sum() / size).abs())
