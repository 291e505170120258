"""ahn, Lemmas 5 and 6: under eq. (11) the loss (5) is the mean of Tr((I - M) Y_L^T Y_L (I - M)), with Y_L the
last row of Z_L when the query starts at its own label y_q instead of 0.

Lemma 6 says why: y_q moves no x, no other label, and enters the query's own label additively. Both hold
prompt by prompt, for any P and any Q with a zero last column: only through that column could y_q leave its
place.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks import attention
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.ahn.support.trace_form import errors, full_model, sparse_model
from icl.checks.numbers import finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator

MEANINGS = {
    "form_error": "largest difference of the squared error and its trace form on a prompt, relative to its "
    "terms",
    "lemma6_x": "largest change of a covariate when the query starts with its label, relative to its terms",
    "lemma6_context_labels": "largest change of a context label then, relative to its terms",
    "lemma6_query_label": "largest error of the statement that the query's label enters additively",
}
PARTS = tuple(MEANINGS)
MEANINGS |= {
    "risk_eq5": "mean of the squared error (5) over the prompts",
    "risk_trace_form": "mean of the trace form over the prompts",
}


@dataclass(eq=False)
class Lemma5(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers."""

    layers: int = integer(3, 1, 4, "terms have degree 3^layers in the tokens and rounding grows with them")
    samples: int = integer(256, 1, 100_000)

    reference = "Lemma 5 and Lemma 6, eqs. (5), (11) and (57)"
    claim = (
        "Under eq. (11) the population risk is E Tr((I - M) Y_L^T Y_L (I - M)), where Y_L is the last row "
        "of Z_L if the query starts with its own label instead of 0."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        attention.require_memory(self.samples, self.context)

    def measure(self) -> Finding:
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        rng = generator(self.seed, "check", 1)
        sparse = errors(sparse_model(self.law, self.layers, rng), prompt)
        outside = errors(full_model(self.law, self.layers, rng, last_column=False), prompt)
        max_error, outside_error = (float(np.max([e[part] for part in PARTS])) for e in (sparse, outside))
        bound = path_rounding(4 * attention.stack_operations(self.dim, self.context, self.layers))
        other = full_model(self.law, self.layers, generator(self.seed, "control"), last_column=True)
        control = errors(other, prompt)["form_error"]
        return finding(
            [
                tried(max_error=max_error)
                .means(
                    "largest error of the trace form and of Lemma 6 at random weights of eq. (11), "
                    "relative to its terms"
                )
                .at_most(bound, PATH),
                # The lemmas hold of any such P and Q: of (11) alone much of them is zero.
                tried(max_error_outside_11=outside_error)
                .means("largest error at random P and Q with a zero last column of Q, relative to its terms")
                .at_most(bound, PATH),
                tried(**sparse).means(**MEANINGS),
            ],
            Control(
                "error of the trace form with random P and Q, where the last column of Q is not zero",
                control,
                control > bound,
            ),
            remarks=[
                "The lemmas hold under less than eq. (11): for any P and any Q whose last column is zero, "
                f"whatever the last row of Q (largest error at random P and Q: {outside_error:.1e})."
            ],
        )
