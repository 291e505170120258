"""ahn, section 5.1 and appendix D: each layer's B improves the conditioning of the covariates.

Observation 1: on S, in coordinates in which Sigma = I, X_{l+1} = X_l (I - |a_l b_l| M X_l^T X_l / N), with
the sign of a descent on the covariates. Observation 2 and appendix D: X_2 is better conditioned than X_1,
which is why the last step is the large one.

On S the Gram matrix of X_l has the eigenvalues s p_l(s)^2 over those s of the first one's, p_{l+1} = p_l (1 -
beta_l s p_l^2): a condition number for every drawn prompt. The formula is compared with attention
over tokens. Measured at the local minimum on S that most searches reach, where training often ends; the other
minima are reported.

A_l = -a_l Sigma^{-1}, B_l = b_l I, beta_l = a_l b_l. B prompts, L layers, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl import quantiles
from icl.checks import attention
from icl.checks.ahn.support.covariates import TOKENS, better_conditioned, error_on_tokens
from icl.checks.ahn.support.critical_set import Point, no_minimum, track_starts
from icl.checks.ahn.support.settings import DEGREES, MAX_DIM, MAX_LAYERS_WITH_B, PromptSettings
from icl.checks.numbers import Numbers, exact, finding, sampled, searched, tried
from icl.checks.rounding import PATH
from icl.checks.settings import fits_in_memory, integer, search_starts
from icl.checks.verdict import CONFIDENCE, Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk

MOST_PROMPTS = (
    f"a half, plus sampling: the {CONFIDENCE:.1%} quantile of a binomial share of one half; X_l and X_(l+1) "
    "are those of the same prompt"
)


@dataclass(eq=False)
class Conditioning(PromptSettings):
    """Settings: of the prompts, their number (`samples`), the layers, and the starts of the search on S."""

    dim: int = integer(5, 2, MAX_DIM, "a prompt takes dim^3 operations")
    context: int = integer(10, 1)
    layers: int = integer(3, 2, MAX_LAYERS_WITH_B, DEGREES)
    starts: int = search_starts(64)
    samples: int = integer(4000, 1000)

    task_covariance = "inverse"

    reference = "Section 5.1, observations 1 and 2; Appendix D"
    claim = (
        "At the local minimum on S that most searches reach, every layer of eq. (11) takes a descent step "
        "on the covariates, X_(l+1) = X_l (I - |a_l b_l| M X_l^T X_l / n), and on most prompts X_(l+1) is "
        "better conditioned than X_l."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context < self.dim:
            raise InputError(
                f"check.context={self.context}: must be at least check.dim={self.dim}, or no Gram matrix has "
                "an inverse"
            )
        fits_in_memory(self.samples, 1000, self.dim**2)
        attention.require_memory(TOKENS * self.layers, self.context)
        self.risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)

    def measure(self) -> Finding:
        minima = self.risk.minimise(generator(self.seed, "search"), self.starts, track_starts)
        if not minima:
            return no_minimum()
        chosen = max(minima, key=lambda minimum: minimum.found)
        s_BD = self._spectra()
        worst, medians = better_conditioned(chosen.beta_L, s_BD)
        error, rounding = error_on_tokens(
            Point(self.risk, self.law, chosen.a_L, chosen.b_L), generator(self.seed, "check", 1)
        )
        turned, _ = better_conditioned(-chosen.beta_L, s_BD)
        others = {f"{other.risk:.6g}": better_conditioned(other.beta_L, s_BD)[0] for other in minima}
        return finding(
            [
                self.most(share_of_prompts=worst),
                searched(least_beta=float(chosen.beta_L.min()))
                .means("least step a_l b_l of the covariates at the minimum on S")
                .above(0.0, "the claim"),
                tried(token_error=error)
                .means(
                    "largest difference of the covariates after a layer of attention from the stated "
                    "step, relative"
                )
                .at_most(rounding, PATH),
                sampled(
                    share_of_prompts_stderr=(worst * (1 - worst) / self.samples) ** 0.5,
                    median_condition_by_layer=medians,
                    share_of_prompts_by_risk=others,
                ).means(
                    median_condition_by_layer="median condition number of the covariates of each layer",
                    share_of_prompts_by_risk="same share at every local minimum found on S, by its risk",
                ),
                searched(risk=chosen.risk, found=chosen.found, beta=chosen.beta_L.tolist()).means(
                    risk="exact risk at the minimum on S that most searches reach",
                    found="number of starts that end at that minimum",
                    beta="steps a_l b_l of the covariates at that minimum, by layer",
                ),
                exact(starts=self.starts).means("number of starts of the search on S"),
            ],
            Control(
                "the share of prompts with the sign of every B reversed",
                turned,
                self.most(share=turned).verdict != "holds",
            ),
            notes=[
                "The last layer is left out, because its B has no effect. Condition numbers are those of "
                "whitened covariates: the condition number of Sigma is common to all layers.",
            ],
            remarks=self._remarks(minima[0].risk, others),
        )

    def most(self, **share: float) -> Numbers:
        """Compare a share of the prompts drawn with one half of all prompts."""
        least = quantiles.fair_coin(CONFIDENCE, self.samples) / self.samples
        (value,) = share.values()
        verdict = "holds" if value > least else "fails" if value < 1 - least else "undecided"
        meaning = "share of prompts on which X_(l+1) is better conditioned than X_l, the least over layers"
        return sampled(**share).means(meaning).judged(verdict, ">", least, MOST_PROMPTS)

    def _remarks(self, best: float, others: dict[str, float]) -> list[str]:
        at_best = others[f"{best:.6g}"]
        remarks = [
            "The formula of observation 1 omits 1/n and, where Sigma is not I, Sigma^-1 inside X_k^T X_k."
        ]
        if at_best < 0.5:
            remarks.append(
                f"The observation is false at the best point found on S, of risk {best:.4g}: there some "
                f"X_(l+1) is better conditioned than X_l on only {at_best:.1%} of the prompts. A small "
                "risk does not require a well-conditioned X_2."
            )
        return remarks

    def _spectra(self) -> Tensor:
        """(B, D): eigenvalues of whitened Gram matrices."""
        grams_RBDD = self.law.covariate_grams([generator(self.seed, "check")], self.samples)
        root_DD = torch.linalg.inv(self.law.root_RDD[0])
        return torch.linalg.eigvalsh(root_DD @ grams_RBDD[0] @ root_DD.mT)
