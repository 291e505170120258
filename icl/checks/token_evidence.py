"""Prompts drawn as tokens, and attention written out on them, with which formulas of the risk are compared.

Independent on purpose of what it tests: x_i, w and the noise are drawn one by one and y_i = <w, x_i> + noise;
every layer is eq. (4) of ahn, token by token. No Wishart matrix, Gram matrix or moment of icl enters.

What is simple is integrated by hand, to see an error of 1 % within a second. No token attends to the query,
so a linear stack's last entry is affine in x_q: its values at x_q = 0, e_1 .. e_D give the loss's mean over
x_q. Under eqs. (8) and (11) it is linear in w too, and w = e_1 .. e_D give the mean over w.

The library's own sampler and paths stand beside: `by_gram` is the loss on its Wishart draws, `paths_error`
what its two paths make of the tokens drawn here.

B prompts, N context tokens, K queries (or points), M = N or K tokens that attend, T = D tasks, D covariates,
P = D + 1 token width, of which A entries are wanted, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from icl.checks.sequential import LEAST, Comparison, compare, size_for
from icl.models import LinearTransformer, Parametrization, gram
from icl.models.batched import batch_last
from icl.tasks import LinearRegressionLaw, TokenPrompt
from icl.theory.quadratic import EPSILON

PRECISION = 0.0015  # relative standard error wanted: an error of 1 % is then more than six of them
MOST = 200_000  # prompts in the first sample, whatever the precision
BLOCK = 4_000_000  # numbers held at a time
NUMBERS = 150_000_000  # that the first sample may take, a second or two, but for its least number of prompts


class Tokens(NamedTuple):
    x_BND: Tensor
    y_BN: Tensor
    w_BD: Tensor


def draw_tokens(law: LinearRegressionLaw, rng: np.random.Generator, batch: int) -> Tokens:
    """Draw from the law's first replica: x = root z, w = mean + root z, y = <w, x> + noise."""
    N, D = law.context_R[0], law.dim
    x_BND = torch.from_numpy(rng.standard_normal((batch, N, D))) @ law.root_RDD[0].T
    w_BD = law.mean_RD[0] + torch.from_numpy(rng.standard_normal((batch, D))) @ law.task_root_RDD[0].T
    y_BN = (x_BND @ w_BD[:, :, None])[:, :, 0]
    if law.label_noise:
        y_BN = y_BN + law.label_noise**0.5 * torch.from_numpy(rng.standard_normal((batch, N)))
    return Tokens(x_BND, y_BN, w_BD)


def last_entries(P_LHPP: Tensor, Q_LHPP: Tensor, context_BNP: Tensor, query_BKP: Tensor) -> Tensor:
    """(B, K): each query's label after layers z_j <- z_j + (1/N) sum_h P_h sum_i z_i (z_i^T Q_h z_j).

    The queries may be one (K, P) for all prompts. In the last layer only a label is asked for: P's last row.
    """

    def attend(z_BMP: Tensor, P_HAP: Tensor, Q_HPP: Tensor) -> Tensor:
        moves = []
        for P_AP, Q_PP in zip(P_HAP, Q_HPP, strict=True):
            scores_BNM = context_BNP @ (Q_PP @ z_BMP.mT / context_BNP.shape[1])  # [i, j] = z_i^T Q z_j / N
            moves.append(scores_BNM.mT @ (context_BNP @ P_AP.T))
        return z_BMP[..., -len(P_AP) :] + sum(moves)

    for P_HPP, Q_HPP in zip(P_LHPP[:-1], Q_LHPP[:-1], strict=True):
        query_BKP, context_BNP = (attend(z_BMP, P_HPP, Q_HPP) for z_BMP in (query_BKP, context_BNP))
    return attend(query_BKP, P_LHPP[-1, :, -1:], Q_LHPP[-1])[..., 0]


def by_tokens(law: LinearRegressionLaw, P_LHPP: Tensor, Q_LHPP: Tensor, tokens: Tokens) -> Tensor:
    """(B,): the loss of any linear stack, its mean over x_q taken exactly."""
    context_BNP = torch.cat([tokens.x_BND, tokens.y_BN[:, :, None]], 2)
    return _mean_over_queries(law, last_entries(P_LHPP, Q_LHPP, context_BNP, _queries(law)), tokens.w_BD)


def by_gram(
    law: LinearRegressionLaw, family: Parametrization, rng: np.random.Generator, batch: int
) -> Tensor:
    """(B,): the same for a loaded family of icl.models on the law's own Wishart draws, by the Gram path."""
    G_RBPP, w_RBD = law.gram_tasks([rng], batch)
    query_root_RPK, ends = law.query_token_root_RPK[:1], family.ends()
    with torch.no_grad():
        return gram.stack_expected_risk(
            *family.stack(), batch_last(G_RBPP), batch_last(w_RBD), query_root_RPK, law.read_out, *ends
        )[0]


def by_tokens_of_all_tasks(
    law: LinearRegressionLaw, A_LDD: Tensor, B_LDD: Tensor | None, x_BND: Tensor
) -> Tensor:
    """(B,): the loss of P_l = [[B_l, 0], [0, 1]], Q_l = [[A_l, 0], [0, 0]], its mean over x_q and w exact.

    Eq. (11)'s sign of A; (8) is -A without B. Labels have no noise, the query's starts at 0. No layer reads
    a label, so a token carries those of several tasks at once: the columns of the roots of E x_q x_q^T and
    E w w^T, whose sizes are those of prompts whatever the condition of Sigma. The last B has no effect and
    may be left out.
    """

    def attend(x_BMD: Tensor, y_BMT: Tensor, A_DD: Tensor, B_DD: Tensor | None) -> tuple[Tensor, Tensor]:
        scores_BNM = x_BND @ (A_DD @ x_BMD.mT / x_BND.shape[1])  # [i, j] = x_i^T A x_j / N
        y_BMT = y_BMT + scores_BNM.mT @ y_BNT
        return x_BMD if B_DD is None else x_BMD + scores_BNM.mT @ x_BND @ B_DD.T, y_BMT

    x_KD, w_DT = law.root_RDD[0].T, torch.cat([law.task_root_RDD[0], law.mean_RD[0][:, None]], 1)
    target_KT, y_BNT = x_KD @ w_DT, x_BND @ w_DT
    query = x_KD, torch.zeros_like(target_KT)
    for layer, A_DD in enumerate(A_LDD[:-1]):
        layers = A_DD, None if B_LDD is None else B_LDD[layer]
        query, (x_BND, y_BNT) = attend(*query, *layers), attend(x_BND, y_BNT, *layers)
    query = attend(*query, A_LDD[-1], None)
    return (law.read_out * query[1] - target_KT).square().sum((1, 2))


def compare_eq_8(
    law: LinearRegressionLaw,
    stacks: Sequence[Tensor],
    formula: Sequence[float],
    rng: np.random.Generator,
    precision: float | Sequence[float] = PRECISION,
    most: int = MOST,
) -> Comparison:
    """Compare the formula with the risks of the stacks A_LDD of eq. (8), their mean over x_q and w exact."""

    def losses(batch: int) -> list[Tensor]:
        x_BND = draw_tokens(law, rng, batch).x_BND
        return [by_tokens_of_all_tasks(law, -A_LDD, None, x_BND) for A_LDD in stacks]

    numbers = len(stacks) * numbers_of(law, len(stacks[0]))
    return compare_with_samples(losses, formula, numbers, precision, most=most)


def paths_error(
    family: Parametrization, law: LinearRegressionLaw, rng: np.random.Generator, batch: int = 32
) -> tuple[float, float]:
    """Largest error of the family's predictions by both paths of icl.models, at random weights and on tokens
    drawn here, and its bound; as a share of the sum of the sizes of a prediction's terms.

    A layer multiplies three factors whose errors add up: (3^L - 1)/2 times one layer's own operations.
    """
    tokens = draw_tokens(law, rng, batch)
    context_BNP = torch.cat([tokens.x_BND, tokens.y_BN[:, :, None]], 2)
    query_BKP = torch.from_numpy(rng.standard_normal((batch, 1, law.dim + 1)))
    size = float(context_BNP.square().sum(2).mean())
    weights = {}
    for name, shape in family.shapes().items():
        noise = torch.from_numpy(rng.standard_normal((1, *shape)))
        scale = size if name in ("A", "Q") else 1.0  # keys meet two tokens
        weights[name] = noise / (scale * noise.norm(dim=(-2, -1), keepdim=True))
    family.load(weights)
    P_LHPP, Q_LHPP = (stack[0].detach() for stack in family.stack())
    expected_BK = last_entries(P_LHPP, Q_LHPP, context_BNP, query_BKP)
    sizes_BK = last_entries(P_LHPP.abs(), Q_LHPP.abs(), context_BNP.abs(), query_BKP.abs())
    prompt = TokenPrompt(context_BNP[None], query_BKP[None, :, 0], torch.zeros(1, batch).double(), 1)
    with torch.no_grad():
        found_CB = [LinearTransformer(family, "tokens").predict(prompt)[0]]
        found_CB.append(LinearTransformer(family).predict(prompt.gram())[0])
    error = max(float(((found_B - expected_BK[:, 0]).abs() / sizes_BK[:, 0]).max()) for found_B in found_CB)
    L, H = P_LHPP.shape[:2]
    operations = H * (3 * (law.dim + 1) + law.context_R[0] + 3)
    return error, 2 * EPSILON * (operations * (3**L - 1) // 2 + 1)


def affordable_context(context: int, dim: int, layers: int = 1) -> int:
    """Return the longest context, at most `context`, of which enough prompts can be drawn: the larger the
    dimension, the less the loss on one prompt varies. In all layers but the last every token meets every
    other.
    """
    per_prompt = NUMBERS / (LEAST * max(1.0, (10 / dim) ** 2))
    most = per_prompt / (5 * (dim + 1) * layers)
    return max(1, min(context, int(most if layers == 1 else min(most, (per_prompt / layers) ** 0.5))))


def compare_with_samples(
    losses: Callable[[int], Sequence[Tensor]],
    formula: Sequence[float] | Tensor,
    numbers: int,
    precision: float | Sequence[float] = PRECISION,
    least: int = LEAST,
    most: int = MOST,
    what: str = "prompts drawn as tokens",
    rounding: Sequence[float] | float = 0.0,
) -> Comparison:
    """Compare the formula's risks at K points with means of `losses(batch)`, K tensors (B,) of fresh prompts.

    `numbers` are held at a time for one prompt; the first sample is as large as `precision` asks, within what
    can be afforded.
    """
    most = min(most, max(least, NUMBERS // numbers))
    expected_K = torch.as_tensor(formula, dtype=torch.float64)
    block = max(1, BLOCK // numbers)

    def draw(batch: int) -> Tensor:
        return torch.stack(list(losses(batch)), 1)

    size = size_for(draw, block, torch.as_tensor(precision) * expected_K.abs(), min(least, most), most)
    return compare(draw, expected_K, block, size, what, torch.as_tensor(rounding, dtype=torch.float64))


def numbers_of(law: LinearRegressionLaw, layers: int = 1) -> int:
    """About how many numbers one prompt takes, drawn as tokens and its D queries answered."""
    N, D = law.context_R[0], law.dim
    return (N + D) * (4 * (D + 1) + (N if layers > 1 else D))


def _queries(law: LinearRegressionLaw) -> Tensor:
    """(x_q, <guess, x_q> + bias) at x_q = 0, e_1 .. e_D."""
    x_KD = torch.eye(law.dim + 1, dtype=torch.float64)[:, 1:]
    return torch.cat([x_KD, (x_KD @ law.guess_RD[0] + law.guess_bias)[:, None]], 1)


def _mean_over_queries(law: LinearRegressionLaw, out_BK: Tensor, w_BD: Tensor) -> Tensor:
    """Average (read_out * entry - <w, x_q>)^2 over x_q ~ N(0, Sigma), by the entry at each of `_queries`."""
    constant_B, slope_BD = law.read_out * out_BK[:, 0], law.read_out * (out_BK[:, 1:] - out_BK[:, :1])
    error_BD = slope_BD - w_BD
    return ((error_BD @ law.Sigma_RDD[0]) * error_BD).sum(1) + constant_B.square()
