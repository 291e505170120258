"""xie, Theorem 2: as C -> infinity, w* != 0, the "risk admits no non-trivial stationary point".

It has, for any number of heads. One suffices: eq. (7) with w* = 0, eta = 1 and y_q = 0 predicts <(1/C) sum_i
y_i x_i, x_q>, in the limit <w, x_q> itself, at a risk of (d + 1) (d + |w*|^2) / C; further heads may be zero.
d heads come closer at finite C: fixed weights, those of least risk in the limit (eta = 1, and a guess at the
constant w* by tau tr(S), tau = 1/d), have risk (d (d + 1) + 2 |w*|^2 / d) / C. A nonnegative risk whose limit
at fixed weights is 0 has its global minimum, hence a stationary point, there. Measured: risk and gradient at
them as C grows and with the moments of the limit itself, and the gradient at each finite C's own minimiser.

H = d heads, D covariates, C = `contexts` tokens, P = K = D + 1. y_q = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import DIFFERENCES
from icl.checks.numbers import exact, finding, tried
from icl.checks.sequential import Sample, mean_of
from icl.checks.settings import integer, rising_contexts, validate
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.factorised_moment import factorised_gradient, factorised_written_out
from icl.checks.xie.support.fewer_heads import predicted_risk
from icl.checks.xie.support.initial_guess import MAX_DIM, TOO_LARGE, Vector, law_around
from icl.checks.xie.support.saturation import Saturation
from icl.constructions.xie.initial_guess import one_step_gd
from icl.errors import InputError
from icl.random import generator

SOURCE = "rounding: 2^-52 times the summands and the size of the gradient's terms, E|G|^2 |X| (|P| + |Q|)"
SHARE = "rounding, the largest ratio over the contexts"
RISK_SOURCE = "rounding: 2^-52 times the summands and the size of the risk's terms"
IN_THE_LIMIT = "predictions with the limit M(w) of the Gram matrix, at 1,000 drawn w"
DRAWN = 1000
LIMIT = 2**60  # 1/C is lost beside 1: these are the moments, and the weights, of C -> infinity


@dataclass(eq=False)
class Theorem2:
    """Settings: dimension, context lengths in rising order, prior mean w* (or its norm), not zero, seed of
    the random weights of the control."""

    dim: int = integer(10, 1, MAX_DIM, TOO_LARGE)
    contexts: Sequence[int] = (10, 100, 1000, 10_000, 100_000, 1_000_000)
    prior_mean: Vector = None
    prior_mean_norm: float | None = None
    seed: int = integer(0, 0)

    reference = "Theorem 2; Appendices A.2 and A.3"
    claim = (
        "For w* != 0, in the limit C -> infinity, the risk of multi-head LSA has no non-trivial stationary "
        "point."
    )

    def __post_init__(self) -> None:
        validate(self)
        reason = "the risk at fixed weights falls into the rounding of its terms"
        self.contexts = rising_contexts(self.contexts, 10**9, reason)
        self.law = law_around(self.dim, self.contexts[0], self.seed, self.prior_mean, self.prior_mean_norm)
        if not self.law.mean_RD.any():
            raise InputError("check.prior_mean: Theorem 2 is about w* != 0")

    def measure(self) -> Finding:
        limit, cases = self._at(LIMIT), [self._at(C) for C in self.contexts]
        heads, own = limit.heads(), [case.heads() for case in cases]
        risk, gradient = limit.at(*heads)
        risk_bound, bound = limit.rounding_at(*heads)
        risks, gradients = zip(*(case.at(*heads) for case in cases), strict=True)
        least, at_least = zip(*(case.at(*its) for case, its in zip(cases, own, strict=True)), strict=True)
        own_bounds = [case.rounding_at(*its)[1] for case, its in zip(cases, own, strict=True)]
        excess = [abs(r - case.least.value) / case.rounding for r, case in zip(least, cases, strict=True)]
        one_head = [matrix[None] for matrix in one_step_gd(torch.zeros_like(limit.w_star_D), eta=1.0)]
        (one_risk, one_gradient), one_bounds = limit.at(*one_head), limit.rounding_at(*one_head)
        factorised, least_factorised = factorised_gradient(limit, *heads)
        C = self.contexts[-1]
        descent = [matrix[None] for matrix in one_step_gd(limit.w_star_D, eta=1.0)]
        control_risk, control = limit.at(*descent)
        rng = generator(self.seed, "control")
        drawn = [torch.from_numpy(rng.standard_normal(tuple(matrix.shape))) for matrix in heads]
        at_drawn = limit.at(*drawn)[1]
        seen = min(control / limit.rounding_at(*descent)[1], at_drawn / limit.rounding_at(*drawn)[1]) > 1
        guesses = self._errors_in_the_limit(rng, heads, one_head, descent)
        shares = [norm and norm / its for norm, its in zip(at_least, own_bounds, strict=True)]
        nothing = self.dim + float(self.law.mean_RD[0].square().sum())
        stated = [
            (self.dim * (self.dim + 1) + 2 * (nothing - self.dim) / self.dim) / C for C in self.contexts
        ]
        slopes = [case.norm_by_differences(*heads, rng) for case in cases]
        zero, again = [0 * matrix for matrix in heads], factorised_written_out(limit.w_star_D, *heads)
        largest_gradient = float(np.max(shares))
        largest_excess = float(np.max(excess))
        return finding(
            [
                exact(gradient_norm_in_the_limit=gradient)
                .means("norm of the gradient at d heads with fixed weights in the limit C -> infinity")
                .also_by(
                    DIFFERENCES,
                    gradient_norm_in_the_limit=limit.norm_by_differences(*heads, rng),
                    size=at_drawn,
                )
                .at_most(bound, SOURCE),
                exact(risk_in_the_limit=risk)
                .means("risk of these d heads in the limit")
                .also_by(IN_THE_LIMIT, risk_in_the_limit=guesses[0].mean, size=nothing)
                .at_most(risk_bound, RISK_SOURCE),
                exact(one_head_gradient_norm_in_the_limit=one_gradient)
                .means("norm of the gradient at one head, eq. (7) with w* = 0 and eta = 1, in the limit")
                .also_by(
                    DIFFERENCES,
                    one_head_gradient_norm_in_the_limit=limit.norm_by_differences(
                        one_head[0], one_head[1], rng
                    ),
                    size=at_drawn,
                )
                .at_most(one_bounds[1], SOURCE),
                exact(one_head_risk_in_the_limit=one_risk)
                .means("risk of that head in the limit")
                .also_by(IN_THE_LIMIT, one_head_risk_in_the_limit=guesses[1].mean, size=nothing)
                .at_most(one_bounds[0], RISK_SOURCE),
                exact(largest_gradient_of_minimisers=largest_gradient)
                .means("largest gradient at the minimisers of finite C, over its rounding error")
                .compared_by("largest_excess_of_minimisers", "the risk, which is least there")
                .at_most(1.0, SHARE),
                exact(largest_excess_of_minimisers=largest_excess)
                .means("largest excess of these minimisers over the convex bound, over its rounding error")
                .compared_by("largest_excess_of_minimisers", "risk at the weights, and convex bound")
                .at_most(1.0, SHARE),
                exact(contexts=self.contexts, weights_norm=float(torch.stack(heads).norm()))
                .means(contexts="context lengths C", weights_norm="norm of the weights of the d heads")
                .by_definition(),
                exact(gradient_norm_by_context=gradients)
                .means("norm of the gradient at these weights, by C")
                .also_by(
                    DIFFERENCES,
                    gradient_norm_by_context=slopes,
                    size=at_drawn,
                ),
                exact(
                    one_head_risk_by_context=[case.at(*one_head)[0] for case in cases],
                    risk_at_minimiser_by_context=least,
                )
                .means(
                    one_head_risk_by_context="risk of the one head, by C",
                    risk_at_minimiser_by_context="risk at the minimiser of each C",
                )
                .also_by(
                    "closed forms",
                    one_head_risk_by_context=[(self.dim + 1) * nothing / C for C in self.contexts],
                    risk_at_minimiser_by_context=[predicted_risk(case) for case in cases],
                    size=nothing,
                ),
                exact(gradient_norm_at_minimiser_by_context=at_least)
                .means("norm of the gradient at the minimiser of each C")
                .compared_by("largest_excess_of_minimisers", "the risk, which is least there"),
                exact(risk_of_control=control_risk)
                .means("risk at the control's weights in the limit")
                .also_by(
                    IN_THE_LIMIT, risk_of_control=guesses[2].mean, stderr=guesses[2].stderr, size=nothing
                ),
                exact(
                    risk_by_context=risks,
                    risk_slope=_log_slope(self.contexts, risks),
                    gradient_norm_slope=_log_slope(self.contexts, gradients),
                    gradient_norm_at_zero_weights=limit.at(*zero)[1],
                    factorised_gradient_norm=factorised,
                    factorised_least_gradient_in_X=least_factorised,
                )
                .also_by(
                    "the closed form (d (d + 1) + 2 |w*|^2 / d) / C",
                    risk_by_context=stated,
                    risk_slope=_log_slope(self.contexts, stated),
                    size=nothing,
                )
                .also_by(
                    DIFFERENCES,
                    gradient_norm_slope=_log_slope(self.contexts, slopes),
                    gradient_norm_at_zero_weights=limit.norm_by_differences(zero[0], zero[1], rng),
                    size=max(1.0, at_drawn),
                )
                .also_by(
                    "moments of Gaussian w written out",
                    factorised_gradient_norm=again[0],
                    factorised_least_gradient_in_X=again[1],
                )
                .means(
                    risk_by_context="risk of the d heads with fixed weights, by C",
                    risk_slope="slope of that risk in log C",
                    gradient_norm_slope="slope of that gradient norm in log C",
                    gradient_norm_at_zero_weights="norm of the gradient at zero weights in the limit",
                    factorised_gradient_norm="norm of the gradient at the d heads with the factorised "
                    "moment of A.2",
                    factorised_least_gradient_in_X="least norm of the gradient in X_k with the factorised "
                    "moment",
                ),
                tried(gradient_norm_at_random_weights=at_drawn).means(
                    "norm of the gradient at random weights in the limit"
                ),
            ],
            Control(
                "the gradient norm in the limit at eq. (7) with y_q = 0 and eta = 1, where the risk is "
                f"{control_risk:.6g} (|w*|^2 = {float(limit.w_star_D.square().sum()):.6g}); random weights "
                "are rejected, too",
                control,
                seen,
            ),
            remarks=_remarks(self.dim, risks[-1] * C, gradients[-1] * C, factorised, least_factorised),
            # One point where the gradient vanishes refutes the claim; none found would not prove it.
            counterexample=True,
        )

    def _errors_in_the_limit(self, rng: np.random.Generator, *layers: Sequence[Tensor]) -> list[Sample]:
        """Return the mean square error of each layer's prediction where the Gram matrix is its limit M(w),
        with w drawn and the mean over x_q exact; y_q = 0."""
        w_BD = self.law.mean_RD[0] + torch.from_numpy(rng.standard_normal((DRAWN, self.dim)))
        M_BPP = torch.zeros(DRAWN, self.dim + 1, self.dim + 1, dtype=torch.float64)
        M_BPP[:, :-1, :-1] = torch.eye(self.dim)
        M_BPP[:, -1, :-1] = M_BPP[:, :-1, -1] = w_BD
        M_BPP[:, -1, -1] = w_BD.square().sum(1)
        errors = [
            torch.einsum("hp,bpr,hrd->bd", P_HPP[:, -1], M_BPP, Q_HPP[..., :-1]) - w_BD
            for P_HPP, Q_HPP in layers
        ]
        return [mean_of(error_BD.square().sum(1)) for error_BD in errors]

    def _at(self, context: int) -> Saturation:
        return Saturation(replace(self.law, context_R=(context,)))


def _log_slope(contexts: Sequence[int], values: Sequence[float]) -> float:
    return float(np.polyfit(np.log(contexts), np.log(values), 1)[0])


def _remarks(dim: int, risk_by_C: float, norm_by_C: float, factorised: float, least: float) -> list[str]:
    return [
        f"Counterexample: {dim} heads with fixed weights have risk {risk_by_C:.4g} / C and a gradient of "
        f"norm {norm_by_C:.4g} / C. Both vanish in the limit: a risk is never negative, so it has its "
        "minimum there.",
        "A.2 replaces E[G_ab G_ce] by E[G_ab] E[G_ce] as C grows. But all tokens share w, so G converges "
        "to M(w) = E[z z^T | w] and the limit is E[M_ab M_ce]. With the factorised moment the gradient at "
        f"these weights has norm {factorised:.4g}, and no X has a smaller gradient than {least:.4g}; this "
        "is what the proof shows. With that moment the form is not a mean square: E[t' q_k G] is no "
        "multiple of E[G], so the form is unbounded below.",
        "The stationary points at finite C, which A.3 admits, are not mere plateaus: at every C measured the "
        "global minimum is one. The gap to gradient descent is positive at every C and decreases like 1 / C.",
        "One head suffices: eq. (7) with w* = 0, eta = 1 and y_q = 0 has risk (d + 1) (d + |w*|^2) / C, "
        "which vanishes in the limit; further heads may be zero. All-zero weights are a trivial "
        "stationary point, because every gradient is a product with P_h or Q_h.",
    ]
