"""ahn, Lemma 1: the forward pass of eq. (8) is preconditioned gradient descent on the prompt's least squares.

With P_l = [[0, 0], [0, 1]] and Q_l = -[[A_l, 0], [0, 0]] the label entry of token i after l layers is
y_i - <w_l, x_i>, and of the query (label 0) -<w_l, x_q>, where w_0 = 0 and w <- w - A_l^T grad R(w),
R(w) = 1/(2N) sum_i (<w, x_i> - y_i)^2. The paper prints A_l for A_l^T: the same for symmetric A_l.

R seeds, B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.ahn.support.descent import descent_errors, operations, random_steps
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.given_weights import require_family
from icl.checks.numbers import finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding, Weights
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegressionLaw

REMARKS = [
    "With eq. (8) as printed the preconditioner is A_l^T; the proof does not mention the transpose. The two "
    "are the same for symmetric A_l, as at all solutions in the paper.",
    "The proof divides by n twice, theta - A grad f / n with 1/n already in f; eq. (9) is correct. The "
    "sign in the last line of the proof is wrong, too: the entry is y - <w, x>.",
]


@dataclass(eq=False)
class Lemma1(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers."""

    layers: int = integer(4, 1, 16, "the bound on rounding doubles with each layer")
    samples: int = integer(64, 1, 100_000)

    reference = "Lemma 1, eqs. (8) and (9)"
    claim = (
        "The forward pass of L layers of eq. (8) is L steps of preconditioned gradient descent on the least "
        "squares of the prompt, layer l with preconditioner A_l."
    )
    needs_training = False  # an identity: true of any weights

    def __post_init__(self) -> None:
        super().__post_init__()
        attention.require_memory(self.samples * self.layers, self.context)

    def measure(self) -> Finding:
        A_LDD = random_steps(self.layers, self.law, generator(self.seed, "check", 1))
        return self._find([(self.law, A_LDD)])

    def judge(self, weights: Weights) -> Finding:
        """Measure the same for given A, each seed on prompts of its own law."""
        law = weights.regression("Lemma 1")
        require_family(weights, "Lemma 1, eq. (8),", ["sparse_a"])
        if law.label_noise:
            raise InputError("check.weights: Lemma 1 is about labels without noise")
        A_RLDD = weights.matrices["A"].detach().to(torch.float64)
        attention.require_memory(self.samples * A_RLDD.shape[1], max(law.context_R))
        return self._find([(law.replica(r), A_LDD) for r, A_LDD in enumerate(A_RLDD)])

    def _find(self, seeds: Sequence[tuple[LinearRegressionLaw, Tensor]]) -> Finding:
        errors = [descent_errors(law, A_LDD, self.samples, self.seed) for law, A_LDD in seeds]
        by_seed = [error["transpose"] for error in errors]
        max_error = float(np.max(by_seed))
        bound = path_rounding(max(operations(A_LDD, law.context_R[0]) for law, A_LDD in seeds))
        asymmetry = max(float((A - A.mT).norm() / A.norm().clamp_min(1e-300)) for _, A in seeds)
        wrong = ["perturbed", *(["printed"] if asymmetry > 1e-6 else [])]
        control = min(error[name] for name in wrong for error in errors)
        description = "error against descent with a perturbed A_0" + (
            ", or with A_l instead of A_l^T, the smaller" if len(wrong) > 1 else "; A is symmetric"
        )
        return finding(
            [
                tried(max_error=max_error)
                .means(
                    "largest difference of a label entry from descent preconditioned by A_l^T, relative "
                    "to its terms"
                )
                .at_most(bound, PATH),
                tried(
                    max_error_by_seed=by_seed,
                    max_error_with_A=float(np.max([error["printed"] for error in errors])),
                    max_error_second_division=float(np.max([error["divided"] for error in errors])),
                    asymmetry=asymmetry,
                ).means(
                    max_error_by_seed="largest difference of a label entry from that descent, by seed",
                    max_error_with_A="largest difference with A_l instead of A_l^T, as printed",
                    max_error_second_division="largest difference with a second division by n, as in the "
                    "proof",
                    asymmetry="largest relative asymmetry |A_l - A_l^T| / |A_l|",
                ),
            ],
            Control(description, control, control > bound),
            remarks=REMARKS,
        )
