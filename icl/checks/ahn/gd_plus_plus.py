"""ahn, section 5: at Sigma = I the points of S are GD++ (von Oswald et al. 2023), up to step sizes.

With A_l = -a_l I and B_l = b_l I in (11), every layer takes one gradient step on the least squares of the
tokens it is given, y_j <- y_j - (a_l / N) <sum_i y_i x_i, x_j>, and moves the covariates of all of them by
x_j <- x_j - (a_l b_l / N) sum_i x_i <x_i, x_j>, the query's too. Compared with that iteration written out,
token by token and layer by layer.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from icl.checks import attention
from icl.checks.ahn.support.descent import gd_plus_plus
from icl.checks.numbers import finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer, law_of, validate
from icl.checks.verdict import Control, Finding
from icl.models.parametrizations import sparse_stack
from icl.random import generator
from icl.tasks import LinearRegressionLaw

CONTROL_EIGENVALUES = (0.25, 1.0)  # of a Sigma that is not I, in turn


@dataclass(eq=False)
class GdPlusPlus:
    """Settings: dimension, context length, layers, number of prompts (`samples`), seed of all draws."""

    dim: int = integer(5, 1)
    context: int = integer(20, 1)
    layers: int = integer(3, 1, 4, "terms have degree 3^layers in the tokens and rounding grows with them")
    seed: int = integer(0, 0)
    samples: int = integer(64, 1, 100_000)

    reference = "Section 5, after Theorem 4; eq. (11)"
    claim = (
        "At Sigma = I the layers of eq. (11) with A_l = -a_l I and B_l = b_l I are the GD++ algorithm of von "
        "Oswald et al. (2023), up to step sizes."
    )

    def __post_init__(self) -> None:
        validate(self)
        self.law = law_of(self.dim, self.context, self.seed, covariance="identity")
        attention.require_memory(self.samples * self.layers, self.context)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check", 1)
        unit = 1 / (1 + self.dim / self.context)
        a_L, b_L = rng.uniform(0.2, 0.8, self.layers) * unit, rng.uniform(0.2, 1.5, self.layers)
        error = self._error(self.law, a_L, b_L, a_L * b_L)
        bound = path_rounding(4 * attention.stack_operations(self.dim, self.context, self.layers))
        eigenvalues = [CONTROL_EIGENVALUES[i % 2] for i in range(self.dim)]
        other = law_of(self.dim, self.context, self.seed, eigenvalues=eigenvalues, task_covariance="inverse")
        controls = {
            "the step b_l of the covariates instead of a_l b_l": self._error(self.law, a_L, b_L, b_L),
            "another Sigma": self._error(other, a_L, b_L, a_L * b_L),
        }
        control = float(np.min(list(controls.values())))
        return finding(
            [
                tried(max_error=error)
                .means(
                    "largest difference of an entry of a token after a layer from GD++, relative to its terms"
                )
                .at_most(bound, PATH),
                tried(gd_steps=a_L.tolist(), covariate_steps=(a_L * b_L).tolist()).means(
                    gd_steps="step sizes a_l of the labels, by layer",
                    covariate_steps="step sizes a_l b_l of the covariates, by layer",
                ),
            ],
            Control(
                f"the smaller of the errors with {' and with '.join(controls)}", control, control > bound
            ),
            remarks=[
                "The step of the covariates is a_l b_l and not b_l: b_l is the ratio of the two step "
                "sizes of GD++.",
            ],
        )

    def _error(
        self, law: LinearRegressionLaw, a_L: np.ndarray, b_L: np.ndarray, gamma_L: np.ndarray
    ) -> float:
        """Largest difference of any entry of any token after any layer, as a share of its terms' sizes.

        The stack is the point of S at the law's Sigma, A_l = -a_l Sigma^{-1}.
        """
        prompt = law.token_prompts([generator(self.seed, "check")], self.samples)
        Z_BPM, inverse_DD = attention.tokens_of(prompt), torch.linalg.inv(law.Sigma_RDD[0])
        A_LDD = -torch.from_numpy(a_L)[:, None, None] * inverse_DD
        B_LDD = torch.from_numpy(b_L)[:, None, None] * torch.eye(law.dim, dtype=torch.float64)
        P_LPP, Q_LPP = (stack[0, :, 0] for stack in sparse_stack(A_LDD[None], B_LDD[None]))
        layers_LBPM = attention.every_layer(P_LPP, Q_LPP, Z_BPM)
        sizes_LBPM = attention.every_layer(P_LPP.abs(), Q_LPP.abs(), Z_BPM.abs())
        return float(((layers_LBPM - gd_plus_plus(a_L, gamma_L, Z_BPM)).abs() / sizes_LBPM).max())
