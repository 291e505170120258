"""xie, Lemma 3: every y_q-LSA is a linear transformer block (30); and the converse, of which no word is said.

The block is one head, then a linear MLP; its query token ends in 0. Of W2^T W1 only the last row enters the
prediction, and its first d entries are a guess v: one hidden unit is enough, and every block, of any width,
is a y_q-LSA. The two classes are one, and so are their least risks.

R replicas, B prompts, C = `context` tokens, D covariates, P = D + 1 token width, X hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.rounding import along_a_path
from icl.checks.settings import in_range
from icl.checks.verdict import Control, Finding, at_most, combine, decide
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS, AroundPrior
from icl.checks.xie.support.yq_lsa import LayerRisk, descent_from, path_length
from icl.constructions.xie.initial_guess import block_of_yq_lsa, yq_lsa_of_block
from icl.errors import whole
from icl.models import LinearTransformer, LinearTransformerBlock, Parametrization, YqLSA
from icl.random import generator
from icl.tasks import TokenPrompt
from icl.theory.closed_forms import isotropic_step

MAX_HIDDEN = 4096
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

    hidden: int = 11
    samples: int = 64

    reference = "Lemma 3; Appendix B.2, eqs. (30) and (31)"
    claim = "Every y_q-LSA is a linear transformer block."

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range("check.hidden", self.hidden, 1, MAX_HIDDEN, "rounding grows with the width")
        whole("check.samples", self.samples, 1, 100_000)
        attention.affordable(self.samples, self.context)

    def measure(self) -> Finding:
        lsa = YqLSA(self.dim, 1, init_std=1.0)
        given = LinearTransformerBlock(self.dim, 1, self.hidden, init_std=1.0)
        for model in (lsa, given):
            model.initialise([self.seed])
        block, lsa_of_given = block_of(lsa), lsa_of(given)
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        max_error, converse = error(lsa, block, prompt), error(given, lsa_of_given, prompt)
        of_outputs = along_a_path(2 * (path_length(self.dim, self.context) + self.hidden), "max_error")
        risks, risk_bound = self._least_risks()
        spread = max(risks.values()) - min(risks.values())
        control = float(np.min([error(lsa, wrong, prompt) for wrong in wrong_blocks(lsa)]))
        verdict, bound = combine(
            [
                (decide(max_error, of_outputs.value), of_outputs),
                at_most("max_error_converse", converse, of_outputs.value, of_outputs.source),
                at_most("largest_risk_difference", spread, risk_bound, ROUNDING_OF_RISKS),
            ]
        )
        return Finding(
            verdict,
            {
                "max_error": max_error,
                "max_error_converse": converse,
                "hidden": self.hidden,
                "hidden_needed": block.hidden,
                "rank_of_given_block": mlp_rank(given),
                "rank_needed": mlp_rank(block),
                **risks,
                "largest_risk_difference": spread,
                "risk_bound": risk_bound,
            },
            bound,
            Control(
                "error of the block that leaves the guess out of its keys, and of the one that leaves it out "
                "of its MLP, the smaller",
                control,
                control > of_outputs.value,
            ),
            remarks=REMARKS,
            kinds={"*": "exact", "max_error*": "tried"},
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


def block_of(lsa: YqLSA) -> LinearTransformerBlock:
    """The construction of the lemma."""
    return as_block(block_of_yq_lsa(*(matrix.detach()[0, 0] for matrix in (lsa.P, lsa.Q, lsa.v[:, 0]))))


def lsa_of(block: LinearTransformerBlock) -> YqLSA:
    """The converse."""
    model = YqLSA(block.dim, 1)
    matrices = yq_lsa_of_block(*(m.detach()[0, 0] for m in (block.P, block.Q, block.W1, block.W2)))
    model.load({name: matrix[None, None] for name, matrix in matrices.items()})
    return model


def wrong_blocks(lsa: YqLSA) -> list[LinearTransformerBlock]:
    """Blocks whose keys, and whose MLP, do not know the guess."""
    P_PP, Q_PP, v_D = lsa.P.detach()[0, 0], lsa.Q.detach()[0, 0], lsa.v.detach()[0, 0, 0]
    right, blind = block_of_yq_lsa(P_PP, Q_PP, v_D), block_of_yq_lsa(P_PP, Q_PP, 0 * v_D)
    return [as_block(right | {"Q": blind["Q"]}), as_block(right | {"W1": blind["W1"]})]


def as_block(matrices: dict[str, Tensor]) -> LinearTransformerBlock:
    model = LinearTransformerBlock(len(matrices["P"]) - 1, 1, len(matrices["W1"]))
    model.load({name: matrix[None, None] for name, matrix in matrices.items()})
    return model


def mlp_rank(block: LinearTransformerBlock) -> int:
    return int(torch.linalg.matrix_rank(block.W2.detach()[0, 0].mT @ block.W1.detach()[0, 0]))


def error(model: Parametrization, other: Parametrization, prompt: TokenPrompt) -> float:
    """Largest difference of their outputs, tokens and Gram path, as a share of the sizes of all terms."""
    absolute = model.sharing([torch.nn.Parameter(matrix.abs()) for matrix in model.matrices().values()])
    positive = TokenPrompt(prompt.context_RBNP.abs(), prompt.query_RBP.abs(), prompt.target_RB, 1)
    size_RB = LinearTransformer(absolute, "tokens").predict(positive)
    first_RB = LinearTransformer(model, "tokens").predict(prompt)
    others = (
        LinearTransformer(other, "tokens").predict(prompt),
        LinearTransformer(other).predict(prompt.gram()),
    )
    return float(((first_RB - torch.stack(others)) / size_RB).detach().abs().max())
