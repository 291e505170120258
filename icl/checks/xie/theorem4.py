"""xie, Theorem 4: at one step of gradient descent, (7) with v = w*, the gradient of y_q-LSA's risk is O(1/C).

With eta = 1 its norm is 2 (d + 1)/C sqrt(d^2 + d + 2 |w*|^2 + |w*|^4). With eta = C/(C + d + 1) it is zero at
every C, and the point is the global minimum, as the paper conjectures: whatever its weights, y_q-LSA predicts
<v, x_q> + sum_k x_k <G, X_k>, so its risk is a convex quadratic form in (X_k, v), and here is its minimum.

R seeds, D covariates, C = `context` tokens, P = D + 1 token width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from icl.checks.differences import DIFFERENCES
from icl.checks.numbers import exact, finding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding, Weights
from icl.checks.xie.support.best_step import fitted_slope, judge_step, unit_step_gradient
from icl.checks.xie.support.initial_guess import (
    ROUNDING_OF_RISKS,
    AroundPrior,
    worst,
)
from icl.checks.xie.support.saturation import BLUR, Saturation, best_multiple
from icl.checks.xie.support.yq_lsa import LayerRisk, descent_from
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gd_risk
from icl.verdicts import decide

CONTEXTS = tuple(2**k for k in range(7))  # times the context
SOURCE = (
    "rounding: 2^-52 times the number of terms and the gradient with all its terms made positive, at the "
    "context where the error is the largest share of it"
)
SLOPE_SOURCE = "rounding of the gradient norms at eta = 1, carried over to the slope"
REMARKS = [
    "No limit is needed: at every finite C the gradient is zero at the best step size eta = C/(C + d + "
    "1). Section 4.2 and A.3 explain plateaus and biases by a residual gradient of order 1/C. That is the "
    "gradient at eta = 1; at a trained eta there is none. For every other fixed eta, eq. (7) is not "
    "stationary as C grows.",
    "The conjecture of section 4.2 is true: with the best step size the point is the global minimum of "
    "y_q-LSA, and of multi-head LSA with any guess <v, x_q> and any number of heads. Proof: the error is "
    "e = x_q^T (eta S - I) u with u = w - w* and S = (1/C) sum x x^T, and E[S^2] = I / eta gives E[e x_k] "
    "= 0 and E[e x_k G] = 0. These are the derivatives in v and X_k of a risk that is convex in them. The "
    "risk is d (d + 1)/(C + d + 1).",
]


@dataclass(eq=False)
class Theorem4(AroundPrior):
    """Settings: sizes, prior mean w* or its norm. The contexts compared are 1 to 64 times `context`."""

    context: int = integer(10, 1, 10**6, "the gradient is lost in rounding")
    seed: int = field(default=0, init=False)  # nothing is drawn

    reference = "Theorem 4; section 4.2, Appendices A.3 and B.3"
    claim = (
        "The gradient of the risk of y_q-LSA at eq. (7) with v = w* and eta = 1 is O(1/C): the point is "
        "stationary in the limit C -> infinity."
    )

    claim_of_weights = "These weights are one step of gradient descent from w* with the best step size."

    def measure(self) -> Finding:
        D, w_star_D, contexts = self.dim, self.law.mean_RD[0], [k * self.context for k in CONTEXTS]
        risks = [LayerRisk(replace(self.law, context_R=(C,))) for C in contexts]
        best = [isotropic_step(D, C) for C in contexts]
        at_one = [risk.gradient(descent_from(w_star_D, 1.0)) for risk in risks]
        at_best = [risk.gradient(descent_from(w_star_D, eta)) for risk, eta in zip(risks, best, strict=True)]
        slope, slope_error = fitted_slope(contexts, at_one)
        least = risks[0].quadratic.convex_bound(free_direct=True)
        at_claim, gd = risks[0].value(descent_from(w_star_D, best[0])), gd_risk(D, self.context)
        risk_error = float(np.max(np.abs([at_claim - least.value, at_claim - gd])))
        predicted = [unit_step_gradient(w_star_D, C) for C in contexts]
        off = [(abs(norm - its), rounding) for (norm, rounding), its in zip(at_one, predicted, strict=True)]
        steps = [descent_from(w_star_D, eta) for eta in best]
        sizes = [risk.size(step) for risk, step in zip(risks, steps, strict=True)]
        rng = generator(self.seed, "check")
        by_differences = [
            risk.norm_by_differences(step, rng) for risk, step in zip(risks, steps, strict=True)
        ]
        largest_norm, largest_error = worst(at_best), worst(off)
        return finding(
            [
                exact(gradient_norm_best_eta=largest_norm[0])
                .means(
                    "norm of the gradient at the best step size, at the C where it is largest over rounding"
                )
                .also_by(
                    DIFFERENCES,
                    gradient_norm_best_eta=by_differences[at_best.index(largest_norm)],
                    size=min(sizes),
                )
                .at_most(largest_norm[1], SOURCE),
                exact(gradient_error_unit_eta=largest_error[0])
                .means(
                    "error of the closed form of the gradient norm at eta = 1, at the C where it is "
                    "largest over rounding"
                )
                .compared_by("gradient_error_unit_eta", "autograd of the exact risk, and closed form")
                .at_most(largest_error[1], SOURCE),
                exact(slope_error=abs(slope + 1))
                .means("difference of the slope of the gradient norm at eta = 1 from -1")
                .compared_by("slope_error", "fit to autograd of the exact risk, and the closed form's slope")
                .at_most(slope_error, SLOPE_SOURCE),
                exact(risk_error=risk_error)
                .means(
                    "largest difference of the risk at the best step size from the convex bound and from "
                    "the closed form"
                )
                .compared_by("risk_error", "exact moments of the prompts, convex bound and closed form")
                .at_most(2 * least.rounding, ROUNDING_OF_RISKS),
                exact(slope=slope)
                .means("slope of the gradient norm at eta = 1 in log C")
                .compared_by("slope_error", "-1, by the closed form"),
                exact(slope_bound=slope_error, contexts=contexts)
                .means(contexts="context lengths C")
                .by_definition(),
                exact(best_eta=best[0])
                .means("best step size C / (C + d + 1)")
                .also_by(
                    "best multiple of a step from 0, by exact moments of the prompts",
                    best_eta=best_multiple(Saturation(self.law)),
                    size=1 + float(w_star_D.square().sum()),
                ),
                exact(gradient_norm_by_context=[norm for norm, _ in at_one])
                .means("norm of the gradient at eta = 1, by C")
                .compared_by("gradient_error_unit_eta", "the closed form"),
                exact(gradient_norm_best_eta_by_context=[norm for norm, _ in at_best])
                .means("norm of the gradient at the best step size, by C")
                .also_by(DIFFERENCES, gradient_norm_best_eta_by_context=by_differences, size=min(sizes)),
                exact(risk=at_claim, gd_risk=gd, global_bound=least.value)
                .means(
                    risk="risk at the best step size",
                    gd_risk="closed form d (d + 1) / (C + d + 1) of that risk",
                    global_bound="least value of the convex form in (X_k, v)",
                )
                .compared_by("risk_error", "exact moments of the prompts, convex bound and closed form"),
                exact(risk_bound=2 * least.rounding).by_definition(),
            ],
            self._control(risks, contexts, 2 * least.rounding),
            remarks=REMARKS,
        )

    def _control(self, risks: Sequence[LayerRisk], contexts: Sequence[int], of_risks: float) -> Control:
        """Try the step twice as long, and the step of the same length with no guess: neither may pass. Nor
        may errors of 1e-10 in the terms of the gradient and the risk."""
        w_star_D, best = self.law.mean_RD[0], isotropic_step(self.dim, self.context)
        wrong = [(2.0, w_star_D), (1.0, 0 * w_star_D)] if w_star_D.any() else [(2.0, w_star_D)]
        norms, slopes, rejected = [], [], BLUR * risks[0].quadratic.constant > of_risks
        for factor, guess_D in wrong:
            at_one = [risk.gradient(descent_from(w_star_D, factor, guess_D)) for risk in risks]
            model = descent_from(w_star_D, factor * best, guess_D)
            at_best = risks[0].gradient(model)
            slope, slope_error = fitted_slope(contexts, at_one)
            norms.append(at_best[0])
            slopes.append(decide(abs(slope + 1), slope_error) == "fails")
            rejected &= decide(*at_best) == "fails" and BLUR * risks[0].size(model) > at_best[1]
        described = "at twice the best eta" + (", or at v = 0, the smaller" if len(wrong) > 1 else "")
        return Control(
            f"the gradient norm {described}; its slope there, and errors of 1e-10 in all terms, are "
            "rejected, too",
            min(norms),
            rejected and slopes[0],
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare weights with one step of descent from w*, up to what does not enter the prediction."""
        return judge_step(weights)
