"""ahn, Theorem 5: one layer of ReLU attention, x ~ N(0, I), w ~ N(0, I), last row of Q zero.

P = e e^T with e the last coordinate and Q = -I / ((N - 1)/(2N) + (D + 2)/N) on the covariates minimise the
loss globally. With X = b_1 A the exact risk is c ||X||_F^2 + tr X + D + (terms in b_0, not negative): convex
in X, so its minimum over X bounds every such layer from below. The stated weights attain it. The formula is
itself held to prompts drawn as tokens, and so are the library's predictions.

R seeds, N context, D covariates, P = D + 1 token width. b = (b_0, b_1) is the last row of P, A the D x D
block of Q, in Q's own sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.checks.ahn.support.relu_layer import (
    convex_bound,
    diagonal_point,
    gradient_norm,
    held_to_tokens,
    library_error,
    random_point,
)
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    FAMILIES,
    judge_rows,
    require_family,
    require_law,
    single_layer,
)
from icl.checks.rounding import ROUNDING
from icl.checks.sequential import KINDS
from icl.checks.settings import affordable_samples, in_range, law_of
from icl.checks.verdict import Bound, Control, Finding, Weights, combine, decide
from icl.errors import InputError
from icl.random import generator
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.closed_forms import isotropic_step
from icl.theory.distance import distance_to_identity

MAX_DIM = 64
MAX_CONTEXT = 512
MIN_SAMPLES = 5000  # below, an error of the formula of a few per cent could not be seen
REMARKS = [
    "The proof drops tr(D^2) with D = diag(U^T V), which depends on A; in the original coordinates that term "
    "is the constant D, so the statement stands, and the risk is convex in b_1 A.",
]
NOTES = [
    "a (the last column of Q) drops out: the query's last entry is 0. effect_of_a is measured.",
    "Only the last row of Q is assumed zero; b_0 adds terms that are not negative.",
]


class Theorem5:
    """Settings: dimension, context length, the most prompts of the first sample (`samples`), seed."""

    reference = "Theorem 5"
    claim = (
        "One layer of ReLU attention on isotropic data, last row of Q zero, has its global minimum at P "
        "= e e^T of the last coordinate and Q = -I / ((N - 1)/(2N) + (D + 2)/N) on the covariates."
    )

    claim_of_weights = "These ReLU layers are at Theorem 5's minimum, up to P <- gamma P, Q <- Q / gamma."

    def __init__(self, dim: int = 5, context: int = 20, seed: int = 0, samples: int = 100000) -> None:
        reason = "the formula is held to tokens, N D numbers per prompt"
        self.dim = in_range("check.dim", dim, 1, MAX_DIM, reason)
        self.context = in_range("check.context", context, 1, MAX_CONTEXT, reason)
        self.seed, self.samples = seed, affordable_samples(samples, MIN_SAMPLES)
        self.law = law_of(dim, context, seed, eigenvalues=[1.0] * dim, rotation="none")
        self.risk = ReluRisk(dim, context)

    def measure(self) -> Finding:
        D, N, rng = self.dim, self.context, generator(self.seed, "check")
        claim = diagonal_point(1 / (0.5 * (N - 1) / N + (D + 2) / N), D)
        value, stated = float(self.risk.value(*claim)), D - D * N / (2 * (D + 2) + N - 1)
        lowest = convex_bound(self.risk)
        points = [claim, *(random_point(self.risk, generator(self.seed, "check", step)) for step in (1, 2))]
        error, error_bound, effect = library_error(points, self.law, rng)
        tokens = held_to_tokens(points, self.risk, self.law, rng, self.samples)
        measured = {
            "risk_at_claim": value,
            "stated_value": stated,
            "convex_bound": lowest,
            "gradient_norm": gradient_norm(self.risk, *claim),
            "risk_gap": abs(value - lowest),
            "stated_value_error": abs(value - stated),
            "prediction_error": error,
            "effect_of_a": effect,
            **tokens.measured("token"),
        }
        conditions = [
            *(self._rounding(name) for name in ("gradient_norm", "risk_gap", "stated_value_error")),
            Bound(0, "exact: a meets the query's label, which is 0", "effect_of_a"),
            Bound(
                error_bound, "rounding: 2^-52 times a prediction's additions and products", "prediction_error"
            ),
        ]
        verdict, bound = combine(
            [(decide(measured[bound.of], bound.value), bound) for bound in conditions]
            + [tokens.condition("token")]
        )
        tried = dict.fromkeys(("prediction_error", "effect_of_a"), "tried")
        kinds = {"*": "exact", **tried, **KINDS}
        return Finding(verdict, measured, bound, self._control(), NOTES, REMARKS, kinds=kinds)

    def _rounding(self, of: str) -> Bound:
        return Bound(ROUNDING * self.dim, "rounding: 64 eps D, all terms being at most D", of)

    def judge(self, weights: Weights) -> Finding:
        """Do these ReLU layers sit at the minimiser, up to P <- gamma P, Q <- Q / gamma?"""
        law = weights.regression("Theorem 5")
        require_family(weights, "Theorem 5", list(FAMILIES), "relu")
        require_law(law, "Theorem 5", {"x ~ N(0, I)": law.Sigma_RDD, "w ~ N(0, I)": law.Sigma_w_RDD})
        P_RPP, Q_RPP = single_layer(weights, "Theorem 5")
        if bool(Q_RPP[:, -1].any()):
            raise InputError("check.weights: the last row of Q is not zero, as Theorem 5 assumes")
        risks = [ReluRisk(law.dim, context) for context in law.context_R]
        seeds = list(zip(risks, P_RPP[:, -1], Q_RPP[:, :-1, :-1], strict=True))
        return judge_rows(
            [_row(*seed) for seed in seeds],
            [_row(risk, b_P, 0.5 * A_DD) for risk, b_P, A_DD in seeds],
            Bound(
                EXCESS,
                f"exact risk over the minimum, all seeds; Dist(A, I) and |b_0| / |b| at most {DISTANCE}",
                "risk_excess",
            ),
            "the same weights with A halved, excess risk",
            "risk_excess",
        )

    def _control(self) -> Control:
        step = isotropic_step(self.dim, self.context)
        text = "gradient norm at the constant (7) of linear attention"
        if self.context == 1:  # the two constants agree there
            step = 1.1 * step
            text = "gradient norm at a constant a tenth too large (at N = 1 that of (7) is Theorem 5's)"
        shifted = gradient_norm(self.risk, *diagonal_point(step, self.dim))
        return Control(text, shifted, decide(shifted, self._rounding("gradient_norm").value) == "fails")


def _row(risk: ReluRisk, b_P: Tensor, A_DD: Tensor) -> dict[str, float]:
    value = float(risk.value(b_P, A_DD))
    off_identity = torch.stack([distance_to_identity(A_DD), b_P[:-1].norm() / b_P.norm()])
    return {
        "distance": float(off_identity.max()),
        "risk_excess": value / risk.minimum - 1,
        "gradient_norm": gradient_norm(risk, b_P, A_DD),
        "risk": value,
        "optimal_risk": risk.minimum,
    }
