"""Stacks of ahn's Theorems 3 and 4 on prompts drawn as tokens from the user's own Sigma, in the paper's
coordinates, attention written out.

All else that the checks measure is of whitened prompts, Gram matrices and formulas. Two things tie it to the
paper's own. Given the context, attention over its tokens has the loss that the whitened path names, at
weights that are neither symmetric nor on S (`attention_error`; rounding, no sampling); so do the predictions
of icl.models by either path, at random weights (`paths_error`). And its mean over
contexts is the formula's: at a point of S by attention itself, off S by the path just tied to it, and once
more on S on the Gram matrices that icl.tasks draws (`hold`).

The point of S is the best one with all A times 1/L, 2^-L with B: at the best one itself rare prompts carry
the risk, and no plain sample sees them.

R prompts, N context, D covariates, L layers. Stacks whitened and in the sign of eq. (11).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.ahn.support import critical_point, orbits
from icl.checks.ahn.support.critical_set import Point, as_printed
from icl.checks.ahn.support.orbits import Error, Stack
from icl.checks.ahn.support.trace_words import has_words, risk_by_words
from icl.checks.numbers import Numbers, tried
from icl.checks.rounding import ROUNDING
from icl.checks.sequential import LEAST, Comparison
from icl.checks.token_evidence import (
    affordable_context,
    by_tokens_of_all_tasks,
    compare_with_samples,
    draw_tokens,
    numbers_of,
    paths_error,
)
from icl.models import SparseA, SparseAB
from icl.tasks import LinearRegressionLaw
from icl.theory.ahn.invariant_risk import InvariantRisk

OFF_S = 0.2  # how far off S, relative: a Gaussian matrix that is not symmetric
PROMPTS = 16  # on which the paths are compared, one by one
BUDGET = 100_000_000  # numbers that the first sample may take: about a second


def numbers_on_tokens(point: Point, rng: np.random.Generator) -> list[Numbers]:
    """Compare attention, mean risks and both paths with drawn tokens, near this point of S."""
    point = gentle(point)
    off, context = off_s(point, rng), point.law.context_R[0]
    words = not point.risk.with_b and has_words(len(point.a_L), point.law)
    off_risk = float(risk_by_words(off[0], context)) if words else None
    layers = len(point.a_L)
    family = SparseAB(point.law.dim, layers) if point.risk.with_b else SparseA(point.law.dim, layers)
    attention = attention_error(off, point.law, rng)
    by_attention = tried(attention_error=attention.value).means(
        "largest relative difference of the loss by attention over tokens and by the whitened formula"
    )
    means = critical_point.on_tokens(hold(point, off, off_risk, rng), context)
    error, bound = paths_error(family, point.law, rng)
    return [
        critical_point.relative(by_attention, attention.bound, critical_point.ATTENTION, attention.blind),
        means,
        tried(paths_error=error)
        .means("largest difference of the library's predictions from attention written out, relative")
        .at_most(bound, critical_point.PATHS)
        .with_bounds(),
    ]


def gentle(point: Point) -> Point:
    """Return the point with all A shrunk, where the risk has no heavy tail, and at a context one can draw."""
    law, risk, layers = point.law, point.risk, len(point.a_L)
    context = affordable_context(law.context_R[0], law.dim, layers)
    if context < law.context_R[0]:
        law, risk = replace(law, context_R=(context,)), InvariantRisk(law.dim, context, layers, risk.with_b)
    shrunk = point.a_L / (2**layers if risk.with_b else layers)
    return Point(risk, law, shrunk, point.b_L)


def off_s(point: Point, rng: np.random.Generator) -> Stack:
    """Whitened weights near the point that are no multiples of I and not symmetric."""
    noise_DD = OFF_S * torch.tensor(rng.standard_normal((point.law.dim, point.law.dim)))
    near_DD = torch.eye(point.law.dim, dtype=torch.float64) + noise_DD
    A_LDD, B_LDD = point.stack
    return A_LDD @ near_DD, None if B_LDD is None else B_LDD @ near_DD.mT


def attention_error(stack: Stack, law: LinearRegressionLaw, rng: np.random.Generator) -> Error:
    """Loss given each context, by its tokens as printed and by its whitened sample covariance."""
    x_RND = draw_tokens(law, rng, PROMPTS).x_BND
    W_RDD = _whitened_gram(law, x_RND)
    by_path_R, by_tokens_R = (
        orbits.prompt_risks(stack, W_RDD[None])[0],
        by_tokens_of_all_tasks(law, *as_printed(stack, law), x_RND),
    )
    condition = float(torch.linalg.cond(law.Sigma_RDD[0]))
    bound_R = ROUNDING * condition * _largest_loss(stack, W_RDD) / by_path_R
    error_R = (by_tokens_R / by_path_R - 1).abs()
    at = int((error_R / bound_R).argmax())
    return Error(float(error_R[at]), float(bound_R[at]), float(bound_R.min()), float(error_R.max()))


def _largest_loss(stack: Stack, W_RDD: Tensor) -> Tensor:
    """(R,): what the sizes of all factors allow the loss to be, D |K|^2 with |K| <= prod (1 + |A| s p^2)."""
    s_R = torch.linalg.matrix_norm(W_RDD, 2)
    K_R = p_R = torch.ones_like(s_R)
    A_L, B_L = (None if M is None else torch.linalg.matrix_norm(M, 2) for M in stack)
    assert A_L is not None
    for layer, a in enumerate(A_L):
        step_R = a * s_R * p_R * p_R
        K_R = K_R * (1 + step_R)
        if B_L is not None and layer < len(B_L):
            p_R = p_R * (1 + B_L[layer] * step_R)
    return W_RDD.shape[-1] * K_R.square()


def hold(point: Point, off: Stack, off_risk: float | None, rng: np.random.Generator) -> Comparison:
    """Compare the exact risk at the point, and off S where one is known, with drawn prompts."""
    law, layers = point.law, len(point.a_L)
    on, on_printed = point.stack, as_printed(point.stack, point.law)

    def losses(batch: int) -> list[Tensor]:
        x_BND = draw_tokens(law, rng, batch).x_BND
        found = [by_tokens_of_all_tasks(law, *on_printed, x_BND)]
        found.append(orbits.prompt_risks(on, orbits.whitened_prompts(law, rng, batch)[None])[0])
        if off_risk is not None:
            found.append(orbits.prompt_risks(off, _whitened_gram(law, x_BND)[None])[0])
        return found

    risk, numbers = point.value(), numbers_of(law, layers)
    risks = [risk, risk] if off_risk is None else [risk, risk, off_risk]
    return compare_with_samples(losses, risks, numbers, most=max(LEAST, BUDGET // (numbers * layers)))


def _whitened_gram(law: LinearRegressionLaw, x_RND: Tensor) -> Tensor:
    u_RDN = torch.linalg.solve(law.root_RDD[0], x_RND.mT)
    return u_RDN @ u_RDN.mT / x_RND.shape[1]
