"""ahn, Theorem 5: one layer of ReLU attention, x ~ N(0, I), w ~ N(0, I), last row of Q zero.

P = e e^T with e the last coordinate and Q = -I / ((N - 1)/(2N) + (D + 2)/N) on the covariates minimise the
loss globally. With X = b_1 A the exact risk is c ||X||_F^2 + tr X + D + (terms in b_0, not negative):
convex in X, so its minimum over X bounds every such layer from below. The stated weights attain it. The
formula is itself compared with prompts drawn as tokens, and so are the library's predictions.

R seeds, N context, D covariates, P = D + 1 token width. b = (b_0, b_1) is the last row of P, A the D x D
block of Q, in Q's own sign.
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.ahn.support.judge_layers import judge_relu_layers
from icl.checks.ahn.support.relu_layer import (
    by_differences,
    compare_with_tokens,
    convex_bound,
    diagonal_point,
    gradient_norm,
    library_numbers,
    random_point,
)
from icl.checks.differences import DIFFERENCES
from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer, law_of, sample_count, validate
from icl.checks.verdict import Control, Finding, Weights
from icl.random import generator
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.closed_forms import isotropic_step

PER_PROMPT = "the formula is compared with tokens, N D numbers per prompt"
ALL_TERMS = "rounding: 64 eps D, all terms being at most D"
REMARKS = [
    "The proof drops tr(D^2), D = diag(U^T V), although it depends on A. In the original coordinates that "
    "term is the constant d, so the statement is true, and the risk is convex in b_1 A.",
    'The text calls this minimum "similar" to that of linear attention: both are multiples of I, and the '
    "step is 2 (n + d + 1) / (n + 2 d + 3) times that of eq. (7), twice for large n.",
]
NOTES = [
    "The last column a of Q has no effect, because the last entry of the query is 0; effect_of_a measures "
    "it.",
    "Only the last row of Q is assumed to be zero; b_0, the rest of the last row of P, adds terms that "
    "are not negative.",
]


@dataclass(eq=False)
class Theorem5:
    """Settings: dimension, context length, the most prompts of the first sample (`samples`), seed."""

    dim: int = integer(5, 1, 64, PER_PROMPT)
    context: int = integer(20, 1, 512, PER_PROMPT)
    seed: int = integer(0, 0)
    # below, an error of the formula of a few per cent could not be seen
    samples: int = sample_count(100000, 5000)

    reference = "Theorem 5"
    claim = (
        "Let x and w be isotropic. Over all P and all Q whose last row is zero, the risk of one layer of "
        "ReLU attention has its global minimum at P = e e^T, with e the last unit vector, and Q = -I / "
        "((n - 1)/(2n) + (d + 2)/n) on the covariates."
    )
    claim_of_weights = (
        "These ReLU layers are at the global minimum of Theorem 5, up to P <- gamma P, Q <- Q / gamma."
    )

    def __post_init__(self) -> None:
        validate(self)
        self.law = law_of(self.dim, self.context, self.seed, eigenvalues=[1.0] * self.dim, rotation="none")
        self.risk = ReluRisk(self.dim, self.context)

    def measure(self) -> Finding:
        D, N, rng = self.dim, self.context, generator(self.seed, "check")
        step = 1 / (0.5 * (N - 1) / N + (D + 2) / N)
        claim = diagonal_point(step, D)
        value, stated = float(self.risk.value(*claim)), D - D * N / (2 * (D + 2) + N - 1)
        lowest, rounding = convex_bound(self.risk), ROUNDING * D
        directions = generator(self.seed, "check", 3)
        points = [claim, *(random_point(self.risk, generator(self.seed, "check", step)) for step in (1, 2))]
        return finding(
            [
                exact(gradient_norm=gradient_norm(self.risk, *claim))
                .means("norm of the gradient of the exact risk at the stated P and Q")
                .also_by(DIFFERENCES, gradient_norm=by_differences(self.risk, *claim, directions), size=D)
                .at_most(rounding, ALL_TERMS),
                exact(risk_gap=abs(value - lowest))
                .means("difference of the risk at the stated P and Q and the least value of the convex form")
                .compared_by("risk_gap", "risk at the weights, and least value of the convex form")
                .at_most(rounding, ALL_TERMS),
                exact(stated_value_error=abs(value - stated))
                .means("difference of the risk at the stated P and Q from the closed form of the minimum")
                .compared_by("stated_value_error", "moments of ReLU attention, and closed form")
                .at_most(rounding, ALL_TERMS),
                *library_numbers(points, self.law, rng),
                compare_with_tokens(points, self.risk, self.law, rng, self.samples).numbers(
                    "token", "the exact risk"
                ),
                exact(step_over_linear=step / isotropic_step(D, N))
                .means("step of the stated Q over that of eq. (7), linear attention's")
                .by_definition(),
                exact(risk_at_claim=value)
                .means("exact risk at the stated P and Q")
                .compared_by("token_z", "Monte Carlo on tokens"),
                exact(stated_value=stated)
                .means("closed form d - d n / (2 (d + 2) + n - 1) of the minimum")
                .compared_by("stated_value_error", "moments of ReLU attention"),
                exact(convex_bound=lowest)
                .means("least value of the convex form, a lower bound for all P and Q")
                .compared_by("risk_gap", "risk at the stated weights"),
            ],
            self._control(rounding),
            notes=NOTES,
            remarks=REMARKS,
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare ReLU layers with the minimiser, up to P <- gamma P, Q <- Q / gamma."""
        return judge_relu_layers(weights)

    def _control(self, rounding: float) -> Control:
        step = isotropic_step(self.dim, self.context)
        text = "gradient norm at the constant of eq. (7), that of linear attention"
        if self.context == 1:  # the two constants agree there
            step = 1.1 * step
            text = (
                "gradient norm at a constant a tenth too large; at n = 1 that of eq. (7) is the same as "
                "Theorem 5's"
            )
        shifted = gradient_norm(self.risk, *diagonal_point(step, self.dim))
        return Control(text, shifted, shifted > rounding)
