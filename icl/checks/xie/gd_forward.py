"""xie, eqs. (7)-(10): one layer is one step of gradient descent, from w* where the query brings <w*, x_q>.

With Q = [[I, 0], [0, 0]], P = eta [[0, 0], [-w*^T, 1]] and y_q = <w*, x_q> the layer's output is
<w* - eta grad R(w*), x_q>, R(w) = 1/(2C) sum_i (y_i - <w, x_i>)^2, prompt by prompt, for any eta and C.

R replicas, B prompts, C context tokens, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icl.checks import attention
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import in_range, integer
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.descent_step import step_errors
from icl.checks.xie.support.initial_guess import AroundPrior
from icl.checks.xie.support.yq_lsa import path_length
from icl.errors import real, reals

REMARKS = [
    "Eq. (8) holds for every guess: the output is y_q - eta <grad R(w*), x_q>. This is the prediction "
    "after the step only if y_q = <w*, x_q>; with y_q = 0, as in sections 5.1.1 and 5.1.2, <w*, x_q> is "
    "missing.",
    'Signs and factors of "the gradient of the least-squares loss": the layer adds to y_q minus eta times '
    "the gradient of half the mean square over the C context tokens, without the query.",
]


@dataclass(eq=False)
class GDForward(AroundPrior):
    """Settings: sizes, prior mean w* or its norm, step sizes `eta`, prompts (`samples`), their seed."""

    eta: float | Sequence[float] = (0.1, 1.0, 3.0)
    samples: int = integer(64, 1)

    reference = "Section 4.1, eqs. (7)-(10); Appendix B.1"
    claim = (
        "If y_q = <w*, x_q>, the output of the layer (7) is the prediction after one step of gradient "
        "descent from w*, for every step size eta and every C."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.eta, Sequence) and not isinstance(self.eta, str):
            self.etas = reals("check.eta", self.eta, max(len(self.eta), 1), 0, open_low=True)
        else:
            self.etas = [real("check.eta", self.eta, 0, open_low=True)]
        attention.require_memory(1, self.context)
        self.contexts = sorted({1, self.context, 2 * self.dim + 1})
        scores = (self.contexts[-1] + 1) ** 2
        reason = f"attention between all tokens takes samples * {scores} numbers"
        in_range("check.samples", self.samples, 1, attention.MAX_SCORES // scores, reason)

    def measure(self) -> Finding:
        settings = [(C, eta) for C in self.contexts for eta in self.etas]
        errors = [
            step_errors(replace(self.law, context_R=(C,)), eta, self.samples, self.seed)
            for C, eta in settings
        ]
        parts = {name: float(np.max([error[name] for error in errors])) for name in ("tokens", "gram", "v")}
        max_error = float(np.max(list(parts.values())))
        bound = path_rounding(max(2 * path_length(self.dim, C) for C in self.contexts))
        rejected = [name for name in errors[0] if name not in parts]
        least = float(np.min([error[name] for error in errors for name in rejected]))
        return finding(
            [
                tried(max_error=max_error)
                .means(
                    "largest difference of the layer's output from the gradient step, relative to its terms"
                )
                .at_most(bound, PATH),
                tried(
                    max_error_tokens=parts["tokens"],
                    max_error_gram=parts["gram"],
                    max_error_trained_guess=parts["v"],
                ).means(
                    max_error_tokens="largest difference by the token path",
                    max_error_gram="largest difference by the Gram path",
                    max_error_trained_guess="largest difference of y_q-LSA with v = w*",
                ),
                exact(contexts=self.contexts, eta=self.etas)
                .means(contexts="context lengths C", eta="step sizes")
                .by_definition(),
            ],
            Control(
                f"the smallest error against {', '.join(rejected)}, over C and eta", least, least > bound
            ),
            remarks=REMARKS,
        )
