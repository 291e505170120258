"""xie, Lemma 3: every y_q-LSA is a linear transformer block (30); and the converse, which the paper omits.

The block is one head, then a linear MLP; its query token ends in 0. Of W2^T W1 only the last row enters the
prediction, and its first d entries are a guess v: one hidden unit is enough, and every block, of any width,
is a y_q-LSA. The two classes are one, and so are their least risks.

R replicas, B prompts, C = `context` tokens, D covariates, P = D + 1 token width, X hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks import attention
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.blocks import block_of, error, lsa_of, mlp_rank, wrong_blocks
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS, AroundPrior
from icl.checks.xie.support.yq_lsa import LayerRisk, descent_from, path_length
from icl.models import LinearTransformerBlock, Parametrization, YqLSA
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gd_risk

REMARKS = [
    "The converse is also true, at every hidden width: the two classes are equal, and one hidden unit "
    "suffices. The invertible matrix (31) of the proof is not needed.",
    "Section 4.2 contradicts this: if the optimum of LTB is a Newton step, it is the optimum of y_q-LSA "
    "as well. For x ~ N(0, I) the best preconditioner is a multiple of I, so at the common optimum, of "
    "risk d (d + 1)/(C + d + 1), the Newton step is the gradient step, and LTB closes the gap as y_q-LSA "
    "does.",
    "y_q-LSA has fewer parameters for the same functions, by hidden (2d + 2) - d.",
]

MEANINGS = {
    "least_risk": "least risk over all (X_k, v)",
    "risk_yq_lsa": "risk of the gradient step as y_q-LSA",
    "risk_block": "risk of the gradient step as a block",
}


def parameters(model: Parametrization) -> int:
    return sum(parameter[0].numel() for parameter in model.parameters())


@dataclass(eq=False)
class Lemma3(AroundPrior):
    """Settings: sizes, hidden width, prior mean w* (or its norm), number of prompts, seed of all draws."""

    hidden: int = integer(11, 1, 4096, "rounding grows with the width")
    samples: int = integer(64, 1, 100_000)

    reference = "Lemma 3; Appendix B.2, eqs. (30) and (31)"
    claim = "Every y_q-LSA is a linear transformer block, eq. (30)."

    def __post_init__(self) -> None:
        super().__post_init__()
        attention.require_memory(self.samples, self.context)

    def measure(self) -> Finding:
        lsa = YqLSA(self.dim, 1, init_std=1.0)
        given = LinearTransformerBlock(self.dim, 1, self.hidden, init_std=1.0)
        for model in (lsa, given):
            model.initialise([self.seed])
        block, lsa_of_given = block_of(lsa), lsa_of(given)
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        max_error, converse = error(lsa, block, prompt), error(given, lsa_of_given, prompt)
        rounding = path_rounding(2 * (path_length(self.dim, self.context) + self.hidden))
        risks, risk_bound = self._least_risks()
        spread = max(risks.values()) - min(risks.values())
        control = float(np.min([error(lsa, wrong, prompt) for wrong in wrong_blocks(lsa)]))
        return finding(
            [
                tried(max_error=max_error)
                .means(
                    "largest difference of a random y_q-LSA and its block on drawn prompts, relative to "
                    "its terms"
                )
                .at_most(rounding, PATH),
                tried(max_error_converse=converse)
                .means(
                    "largest difference of a random block and its y_q-LSA on drawn prompts, relative to "
                    "its terms"
                )
                .at_most(rounding, PATH),
                exact(largest_risk_difference=spread)
                .means("largest difference of the least risks of both classes and of their convex bound")
                .compared_by("largest_risk_difference", "convex bound, y_q-LSA and block")
                .at_most(risk_bound, ROUNDING_OF_RISKS),
                exact(further_parameters=parameters(given) - parameters(lsa))
                .means("parameters of the given block less those of y_q-LSA")
                .by_definition()
                .above(0.0, "a whole number: as many would be no disadvantage"),
                exact(hidden=self.hidden, hidden_needed=block.hidden).means(
                    hidden="hidden width of the given block",
                    hidden_needed="hidden width of the constructed block",
                ),
                exact(rank_of_given_block=mlp_rank(given), rank_needed=mlp_rank(block)).means(
                    rank_of_given_block="rank of W_2^T W_1 of the given block",
                    rank_needed="rank of W_2^T W_1 of the constructed block",
                ),
                exact(**risks)
                .means(**{name: MEANINGS[name] for name in risks})
                .also_by(
                    "the closed form d (d + 1) / (C + d + 1)",
                    **dict.fromkeys(risks, gd_risk(self.dim, self.context)),
                    size=self.dim + float(self.law.mean_RD.square().sum()),
                ),
                exact(risk_bound=risk_bound).by_definition(),
            ],
            Control(
                "the smaller of the errors of two wrong blocks, without the guess in the keys and without "
                "the guess in the MLP",
                control,
                control > rounding,
            ),
            remarks=REMARKS,
        )

    def _least_risks(self) -> tuple[dict[str, float], float]:
        """Least risk over every (X_k, v); that of descent as y_q-LSA, and as a block; their rounding."""
        risk = LayerRisk(self.law)
        lsa = descent_from(self.law.mean_RD[0], isotropic_step(self.dim, self.context))
        least = risk.quadratic.convex_bound(free_direct=True)
        risks = {
            "least_risk": least.value,
            "risk_yq_lsa": risk.value(lsa),
            "risk_block": risk.value(block_of(lsa)),
        }
        return risks, 2 * least.rounding
