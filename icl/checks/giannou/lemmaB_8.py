"""giannou, Lemma B.8: bounds on gradient, Hessian and Newton's decrement of the regularised logistic loss.

The decrement's upper bound is printed (1 + mu |x|) / (2 sqrt(mu)); from the first two bounds follows twice
that. A point a_i = a, |a| = 1, with every label wrong at x = r a, has p near 1 and p (1 - p) near 0 and
refutes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import TWO_WAYS, share_of_printed_bound, step_off
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.logistic import LogisticLoss

REMARKS = [
    "The correct upper bound is lambda_f <= |grad f| / sqrt(mu) <= (1 + mu |x|) / sqrt(mu); the printed "
    "denominator is 2 sqrt(mu). The proof of Theorem 5.4 uses both forms in one line. Only constants "
    "depend on the factor.",
    "The lower bound on lambda and the bounds on gradient and Hessian are true. The upper bound of the "
    "Hessian can be sharpened to mu + 1/4, because p (1 - p) <= 1/4; with it, phase one of Theorem 5.4 is "
    "true with a decrease of .01.",
    "The first bound is introduced as a bound on |f(x)|; the gradient is meant. 1/n A^T D A is positive "
    "semidefinite, not definite.",
]


@dataclass(eq=False)
class LemmaB8(LogisticProblems):
    """Settings: size of the random problems, mu, their number (`samples`), seed."""

    reference = "Lemma B.8"
    claim = (
        "For the regularised logistic loss, -1 + mu |x| <= |grad f| <= 1 + mu |x|, mu <= |Hess f| <= 1 + "
        "mu, and (-1 + mu |x|) / sqrt(1 + mu) <= lambda_f <= (1 + mu |x|) / (2 sqrt(mu))."
    )

    samples: int = integer(2000, 1, 100_000)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        scales_B1 = torch.from_numpy(10 ** rng.uniform(-2, 2, (self.samples, 1)))
        x_BD = scales_B1 * torch.from_numpy(rng.standard_normal((self.samples, self.dim)))
        wrong_labels, margins_BD = self._wrong_labels()
        drawn, worst = shares_of_bounds(loss, x_BD), shares_of_bounds(wrong_labels, margins_BD)
        share = {name: max(drawn[name], worst[name]) for name in drawn}
        off = max(step_off(loss, x_BD), step_off(wrong_labels, margins_BD))
        others = max(share["gradient"], share["hessian"], share["lambda_low"], share["lambda_high"] / 2)
        claim = (
            tried(lambda_over_printed_bound=share["lambda_high"])
            .means("largest ratio of lambda_f to its printed upper bound")
            .at_most(
                1.0,
                "the claim; rounding is far smaller",
                half_width=share_of_printed_bound(wrong_labels, margins_BD),
            )
        )
        return finding(
            [
                claim.holds_only_if(others <= 1).provided(
                    tried(step_off=off)
                    .means(
                        "largest difference of a Newton step computed in two ways, over its rounding error"
                    )
                    .at_most(1.0, TWO_WAYS, otherwise="undecided")
                ),
                tried(
                    lambda_over_twice_printed_bound=share["lambda_high"] / 2,
                    gradient_over_bound=share["gradient"],
                    hessian_over_bound=share["hessian"],
                    lambda_lower_bound_over_lambda=share["lambda_low"],
                ).means(
                    lambda_over_twice_printed_bound="largest ratio of lambda_f to twice that bound",
                    gradient_over_bound="largest ratio of the gradient to its bounds",
                    hessian_over_bound="largest ratio of the Hessian to its upper bound",
                    lambda_lower_bound_over_lambda="largest ratio of the lower bound of lambda_f to lambda_f",
                ),
            ],
            Control(
                "the largest ratio of the gradient to half of its bound 1 + mu |x|",
                2 * share["gradient"],
                2 * share["gradient"] > 1,
            ),
            notes=[
                "Every number is the ratio of a quantity to its bound, which is at most 1 if the bound "
                "is true."
            ],
            remarks=REMARKS,
        )

    def _wrong_labels(self) -> tuple[LogisticLoss, Tensor]:
        """Return problems of one unit point, its label wrong by a margin r: p ~ 1 - exp(-r)."""
        r_B = torch.linspace(1, 30, 117, dtype=torch.float64)
        A_BND = torch.zeros(len(r_B), 1, self.dim, dtype=torch.float64)
        A_BND[..., 0] = 1
        x_BD = torch.zeros(len(r_B), self.dim, dtype=torch.float64)
        x_BD[:, 0] = -r_B
        return LogisticLoss(A_BND, torch.ones(len(r_B), 1, dtype=torch.float64), self.mu), x_BD


def shares_of_bounds(loss: LogisticLoss, x_BD: Tensor) -> dict[str, float]:
    """Return the largest share that each quantity has of its printed bound."""
    mu, norm_B = loss.mu, x_BD.norm(dim=1)
    gradient_B = loss.gradient(x_BD).norm(dim=1)
    spectrum_BD = torch.linalg.eigvalsh(loss.hessian(x_BD))
    _, lambda_B = loss.newton_direction(x_BD)
    low_B = (mu * norm_B - 1).clamp_min(0)
    return {
        "gradient": float(torch.maximum(gradient_B / (1 + mu * norm_B), low_B / gradient_B).max()),
        "hessian": float((spectrum_BD[:, -1] / (1 + mu)).max()),
        "lambda_low": float((low_B / (1 + mu) ** 0.5 / lambda_B).max()),
        "lambda_high": float((lambda_B * 2 * mu**0.5 / (1 + mu * norm_B)).max()),
    }
