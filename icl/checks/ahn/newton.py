"""ahn, section 4.2: "for any fixed prompt, Newton's method corresponds to A_i proportional to (X
X^T)^{-1}".

R(w) = (1/2n)(w - w*)^T X X^T (w - w*) has the Hessian (1/n) X X^T, so a Newton step is A = n (X X^T)^{-1}
= S^{-1}: one layer of eq. (8) with this A predicts <w*, x_q> exactly, on every prompt with N >= D. The
text prints the Hessian (1/2n) X X^T, whose step is twice as long.

R prompts, each with weights of its own: replicas of the model. D covariates, N = `context` tokens.
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
from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import TokenPrompt

PROMPTS = 64
SOURCE = "rounding: 64 eps times the condition number of X X^T, d and the size of the target's terms"


@dataclass(eq=False)
class Newton(PromptSettings):
    """Settings: of the prompts."""

    dim: int = integer(5, 1, 64, "a prompt takes dim^3 operations")

    reference = "Section 4.2, before Theorem 3"
    claim = (
        "On any fixed prompt with n >= d, a layer of eq. (8) with A = n (X X^T)^-1 takes a Newton step on "
        "the least "
        "squares: it predicts <w*, x_q> exactly."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context < self.dim:
            least = f"must be at least check.dim={self.dim}, else X X^T has no inverse"
            raise InputError(f"check.context={self.context}: {least}")

    def measure(self) -> Finding:
        drawn = self.law.token_prompts([generator(self.seed, "check")], PROMPTS)
        prompt = TokenPrompt(  # a prompt for each replica
            drawn.context_RBNP.transpose(0, 1),
            drawn.query_RBP.transpose(0, 1),
            drawn.target_RB.T,
            drawn.read_out,
        )
        X_RND = prompt.context_RBNP[:, 0, :, :-1]
        S_RDD = X_RND.mT @ X_RND / self.context
        inverse_RDD = torch.linalg.inv(S_RDD)
        rounding_R = ROUNDING * torch.linalg.cond(S_RDD) * self.dim
        found, printed = (self._error(prompt, step * inverse_RDD) for step in (1.0, 2.0))
        fixed = self._error(prompt, torch.linalg.inv(self.law.Sigma_RDD).expand(PROMPTS, -1, -1))
        return finding(
            [
                tried(newton_error=float((found / rounding_R).max()))
                .means("largest error of the prediction at A = S^-1, over what rounding can make of it")
                .at_most(1.0, SOURCE),
                tried(error=float(found.max()), error_with_sigma=float(fixed.median())).means(
                    error="largest error of the prediction at A = S^-1, as a share of |w*| |x_q|",
                    error_with_sigma="median error at A = Sigma^-1, the same for all prompts, as that share",
                ),
            ],
            Control(
                "the median error, as that share, at A = 2 S^-1: the Newton step of the Hessian (1/2n) X "
                "X^T as "
                "printed",
                float(printed.median()),
                bool((printed > rounding_R).float().mean() > 0.5),
            ),
            remarks=[
                "The text prints the Hessian (1/2n) X X^T of R; it is (1/n) X X^T. Weights are the same "
                "for all "
                "prompts, so that a trained A cannot be S^-1; Sigma^-1 is its limit."
            ],
        )

    def _error(self, prompt: TokenPrompt, A_RDD: Tensor) -> Tensor:
        family = SparseA(self.dim, 1)
        family.load({"A": A_RDD[:, None]})
        w_R = torch.linalg.lstsq(
            prompt.context_RBNP[:, 0, :, :-1], prompt.context_RBNP[:, 0, :, -1:]
        ).solution
        size_R = w_R[..., 0].norm(dim=-1) * prompt.query_RBP[:, 0].norm(dim=-1)
        predicted_R = LinearTransformer(family, "tokens").predict(prompt)[:, 0].detach()
        return (predicted_R - prompt.target_RB[:, 0]).abs() / size_R
