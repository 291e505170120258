"""xie, section 4.2: "the global optimum of LTB implements a Newton step rather than one-step gradient
descent"; its MLP "fails to bridge the performance gap between one-step GD and single-head LSA".

It does not fail. By Lemma 3 every y_q-LSA is such a block (eq. (30)), among them the gradient step from w* at
its best eta. Its risk is the least of all blocks, of any width, and it is the step's: it is the step. For x ~
N(0, I) the best preconditioner is a multiple of I: a Newton step with it is that gradient step too.

B prompts, C = `context` tokens, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks import attention
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.blocks import block_of, error_against_step, wrong_blocks
from icl.checks.xie.support.initial_guess import ROUNDING_OF_EXCESSES, AroundPrior, worst
from icl.checks.xie.support.saturation import Saturation, best_multiple
from icl.checks.xie.support.yq_lsa import LayerRisk, descent_from, path_length
from icl.errors import InputError
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gap, gd_risk
from icl.verdicts import decide


@dataclass(eq=False)
class Ltb(AroundPrior):
    """Settings: sizes, prior mean w* (or its norm), not zero, number of prompts, seed of all draws."""

    samples: int = integer(64, 1, 100_000)

    reference = "Section 4.2; Appendix B.2, eq. (30)"
    claim = (
        "The global optimum of the linear transformer block is a Newton step and not a step of gradient "
        "descent, and it does not close the gap between one-step gradient descent and single-head LSA."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.law.mean_RD.any():
            raise InputError("check.prior_mean: section 4.2 is about w* != 0, else there is no gap")
        attention.require_memory(self.samples, self.context)

    def measure(self) -> Finding:
        case, risk = Saturation(self.law), LayerRisk(self.law)
        eta = isotropic_step(self.dim, self.context)
        descent = descent_from(case.w_star_D, eta)
        block, least = block_of(descent), risk.quadratic.convex_bound(free_direct=True)
        rounding = 2 * least.rounding + case.rounding
        value = risk.value(block)
        left, of_left = worst([risk.excess(block), risk.excess(descent)])
        off = max(abs(value - case.descent_risk), abs(value - least.value))
        rng, of_outputs = (
            generator(self.seed, "check"),
            path_rounding(2 * path_length(self.dim, self.context)),
        )
        error = error_against_step(block, eta, self.law, rng, self.samples)
        closed = gd_risk(self.dim, self.context)
        closed_gap = gap(case.w_star_D, torch.zeros_like(case.w_star_D), 0.0, self.context)
        blind, of_blind = risk.excess(wrong_blocks(descent)[1])
        closes = [
            decide(left, of_left),
            decide(off, rounding),
            decide(error, of_outputs),
            "holds" if case.gap - case.gap_rounding > of_left else "undecided",
        ]
        refuted = set(closes) == {"holds"}
        open_gap = decide(least.value - case.descent_risk, rounding) == "fails"
        verdict = "fails" if refuted else "holds" if open_gap else "undecided"
        return finding(
            [
                exact(gap_left_by_block=left)
                .means("excess of the best block over the risk of the gradient step")
                .also_by(
                    "difference of the two risks",
                    gap_left_by_block=least.value - case.descent_risk,
                    size=case.risk.constant,
                )
                .judged(verdict, ">", of_left, ROUNDING_OF_EXCESSES),
                exact(gap_of_lsa=case.gap)
                .means("least risk of multi-head LSA minus the risk of the gradient step")
                .also_by("the closed form 2 |w*|^2 / (d C + 2)", gap_of_lsa=closed_gap),
                exact(risk_block=value, least_risk_block=least.value, gd_risk=case.descent_risk)
                .means(
                    risk_block="risk of the block that makes the step",
                    least_risk_block="least risk of any block",
                    gd_risk="risk of one gradient step from w* with the best step size",
                )
                .also_by(
                    "the closed form d (d + 1) / (C + d + 1)",
                    risk_block=closed,
                    least_risk_block=closed,
                    gd_risk=closed,
                    size=case.risk.constant,
                ),
                exact(risk_error=off)
                .means("largest difference of the block's risk from the step's and from the least risk")
                .also_by(
                    "differences from the closed form",
                    risk_error=max(abs(value - closed), abs(least.value - closed)),
                    size=case.risk.constant,
                ),
                exact(error_bound=of_outputs).by_definition(),
                exact(eta=eta)
                .means("best step size")
                .also_by(
                    "best multiple of a step from 0, by exact moments of the prompts",
                    eta=best_multiple(case),
                    size=case.risk.constant,
                ),
                tried(error_against_gradient_step=error).means(
                    "largest difference of the block from the gradient step on drawn prompts, relative to "
                    "its terms"
                ),
            ],
            Control(
                "the gap left by the same block without a guess in its MLP", blind, blind > of_blind + of_left
            ),
            remarks=[
                f"The best block closes the gap, {case.gap:.4g} for LSA with any number of heads, up to "
                "rounding: on every prompt it is one gradient step from w*. For x ~ N(0, I) the "
                "preconditioner of the Newton step in the text is a multiple of I, so the Newton step is "
                "that gradient step.",
                "The disadvantage of LTB is its number of parameters, not its risk.",
            ],
        )
