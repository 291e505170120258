"""xie, Lemma 3: every y_q-LSA is a linear transformer block (30); and the converse, of which no word is said.

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
from icl.models import LinearTransformerBlock, YqLSA
from icl.random import generator
from icl.theory.closed_forms import isotropic_step

REMARKS = [
    "The converse holds too, at any hidden width: the classes are equal, and one hidden unit is enough. The "
    "proof's invertible matrix (31) is not needed.",
    "So section 4.2 cannot have both: if the optimum of LTB is a Newton step, it is that of y_q-LSA as well. "
    "For x ~ N(0, I) the best preconditioner is a multiple of I: at the common optimum, of risk "
    "d (d + 1)/(C + d + 1), the two steps are the same, and LTB closes the gap exactly as y_q-LSA does.",
    "What is true: y_q-LSA has fewer parameters, by hidden (2d + 2) - d, for the same functions.",
]


@dataclass(eq=False)
class Lemma3(AroundPrior):
    """Settings: sizes, hidden width, prior mean w* (or its norm), number of prompts, seed of all draws."""

    hidden: int = integer(11, 1, 4096, "rounding grows with the width")
    samples: int = integer(64, 1, 100_000)

    reference = "Lemma 3; Appendix B.2, eqs. (30) and (31)"
    claim = "Every y_q-LSA is a linear transformer block."

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
                tried(max_error=max_error).at_most(rounding, PATH),
                tried(max_error_converse=converse).at_most(rounding, PATH),
                exact(largest_risk_difference=spread).at_most(risk_bound, ROUNDING_OF_RISKS),
                exact(hidden=self.hidden, hidden_needed=block.hidden),
                exact(rank_of_given_block=mlp_rank(given), rank_needed=mlp_rank(block)),
                exact(**risks, risk_bound=risk_bound),
            ],
            Control(
                "error of the block that leaves the guess out of its keys, and of the one that leaves it out "
                "of its MLP, the smaller",
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
