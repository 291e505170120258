"""Exact risks of one layer, compared with prompts drawn as tokens and attention written out on them.

Every prompt is drawn with its mirror image, w reflected in w*: what is odd in u = w - w* cancels. The loss is
linear in the query, so its mean over x_q is exact. What is left is regressed on `controls`, whose means are
those of chi-squares; their coefficients come from a sample of their own, so no mean is shifted by them.

Contexts are cut to MOST_TOKENS: the risk of given weights is affine in 1 / C, and largest there.

B prompts, C context tokens, K queries, D covariates, P = D + 1 token width, H heads, F controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.numbers import Numbers, exact, sampled
from icl.checks.sequential import LEAST, Comparison
from icl.checks.token_evidence import Tokens, by_tokens, compare_with_samples, draw_tokens
from icl.tasks import LinearRegressionLaw

MOST_TOKENS = 20
MANY_PROMPTS, MOST_PROMPTS = 1_000_000, 2_000_000
PILOT = 2000  # prompts from which the controls' coefficients are taken
OPERATIONS = 4 * 10**9  # of the first sample: seconds
SEES = 0.02  # a relative error beyond this must not pass unseen; 1 % is aimed at
PRECISION = 0.0018  # relative standard error at which 1 % is seen
SOURCE = "Student's quantile: the deviation from the mean over prompts drawn as tokens, in standard errors"

Heads = tuple[Tensor, Tensor]  # P_HPP, Q_HPP


@dataclass(frozen=True)
class GuessLayer:
    """Weights, the law whose guess they are given, and a sign: a quantity is a signed sum of their risks."""

    law: LinearRegressionLaw
    heads: Heads
    sign: float = 1.0


@dataclass(frozen=True)
class Quantity:
    """A sum of risks, its exact value, and what rounding may make of that."""

    layers: Sequence[GuessLayer]
    expected: float
    rounding: float


def cut(law: LinearRegressionLaw) -> LinearRegressionLaw:
    """Return the law with a context short enough to be drawn many times."""
    return replace(law, context_R=(min(law.context_R[0], MOST_TOKENS),))


def compare_with_tokens(quantities: Sequence[Quantity], rng: np.random.Generator) -> Comparison:
    """Compare quantities with their means over prompts, of laws alike but for w* and the guess."""
    laws = [quantity.layers[0].law for quantity in quantities]

    def plain(batch: int) -> tuple[Tensor, Tensor]:
        around_zero = draw_tokens(replace(laws[0], mean_RD=torch.zeros_like(laws[0].mean_RD)), rng, batch)
        return torch.stack([_value(quantity, around_zero) for quantity in quantities], 1), controls(
            around_zero
        )

    values_BK, controls_BF = plain(PILOT)
    coefficients_FK = _coefficients(controls_BF, values_BK)

    def losses(batch: int) -> Sequence[Tensor]:
        values_BK, controls_BF = plain(batch)
        return (values_BK - controls_BF @ coefficients_FK).unbind(1)

    D, C = laws[0].dim, laws[0].context_R[0]
    heads = sum(len(layer.heads[0]) for quantity in quantities for layer in quantity.layers)
    affordable = OPERATIONS // (4 * C * heads * (D + 1) ** 2)
    return compare_with_samples(
        losses,
        [quantity.expected for quantity in quantities],
        numbers=C * (D + 1) * max(len(layer.heads[0]) for q in quantities for layer in q.layers),
        precision=PRECISION,
        # short prompts of few covariates have heavy tails, which a pilot sample misses
        least=min(MANY_PROMPTS, max(LEAST, affordable // 60)),
        most=min(MOST_PROMPTS, max(200, affordable)),
        rounding=[quantity.rounding for quantity in quantities],
    )


def numbers(comparison: Comparison, of: str) -> list[Numbers]:
    """Compare the quantities called `of` with their formulas; the sample must be precise enough to say so."""
    sees = sampled(tokens_sees=float(comparison.sees_K.max())).means(
        f"relative error of the exact {of} that a sample of this size detects 39 times out of 40"
    )
    return [
        comparison.decides("tokens_z", f"the exact {of}", SOURCE),
        sees.at_most(SEES, "the largest error that may go unseen", otherwise="undecided"),
        sampled(
            **{
                f"{of}_on_tokens": comparison.mean_K.tolist(),
                f"{of}_on_tokens_stderr": comparison.stderr_K.tolist(),
            }
        ).means(**{f"{of}_on_tokens": f"means of the {of} over prompts drawn as tokens"}),
        exact(tokens_samples=comparison.samples, tokens_rounds=comparison.rounds).means(
            tokens_samples="number of prompts of the last round", tokens_rounds="number of rounds of sampling"
        ),
    ]


def note(law: LinearRegressionLaw) -> str:
    C, drawn = law.context_R[0], cut(law).context_R[0]
    at = f" of {drawn} tokens (at given weights the risk is affine in 1 / C)" if drawn < C else ""
    return (
        f"The exact values are compared with attention written out on prompts{at} that are drawn token by "
        "token, each with w reflected in w*."
    )


def controls(tokens: Tokens) -> Tensor:
    """(B, F) of mean zero, for w = u: |u|^2, C tr S and, given u, C u^T S u / |u|^2 are chi-squares."""
    x_BCD, y_BC, u_BD = tokens
    C, D = x_BCD.shape[1:]
    u2_B, uSu_B, tr_B = u_BD.square().sum(1), y_BC.square().mean(1), x_BCD.square().sum((1, 2)) / C - D
    u4 = D * (D + 2)  # E |u|^4
    return torch.stack(
        [
            u2_B - D,
            uSu_B - D,
            tr_B,
            tr_B.square() - 2 * D / C,
            u2_B.square() - u4,
            u2_B * uSu_B - u4,
            u2_B * tr_B,
        ],
        1,
    )


def _coefficients(controls_BF: Tensor, values_BK: Tensor) -> Tensor:
    """Return the coefficients of least squares on the pilot sample, with a constant."""
    design = torch.cat([controls_BF, torch.ones_like(controls_BF[:, :1])], 1)
    return torch.linalg.lstsq(design, values_BK, driver="gelsd").solution[:-1]


def _value(quantity: Quantity, around_zero: Tokens) -> Tensor:
    """(B,): the quantity on each prompt and its mirror image, averaged."""
    total_B = torch.zeros(len(around_zero.w_BD), dtype=torch.float64)
    for layer in quantity.layers:
        for side in (1, -1):
            total_B += layer.sign / 2 * _loss(layer, around_zero.x_BND, side * around_zero.w_BD)
    return total_B


def _loss(layer: GuessLayer, x_BCD: Tensor, u_BD: Tensor) -> Tensor:
    """(B,): (prediction - <w, x_q>)^2, its mean over x_q exact."""
    (P_HPP, Q_HPP), w_BD = layer.heads, layer.law.mean_RD[0] + u_BD
    tokens = Tokens(x_BCD, (x_BCD @ w_BD[:, :, None])[:, :, 0], w_BD)
    return by_tokens(layer.law, P_HPP[None], Q_HPP[None], tokens)
