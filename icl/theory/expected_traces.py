"""Expected traces of words in a sample covariance S = (1/N) sum x x^T, x ~ N(0, Sigma), and fixed matrices.

By Wick's formula E tr(S X_1 S X_2 ... S X_k) is a sum over the (2k-1)!! pairings of the 2k vectors. A
pairing joins the k copies of S into groups that share one context token, worth N^(groups - k), and the
matrices into cycles, each worth the trace of a product of X_j Sigma and X_j^T Sigma. k length of the word,
C distinct cycles, T distinct terms, L layers, D covariates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations

import torch
from torch import Tensor

MAX_LENGTH = 6  # 10395 pairings; length 8 would have 2 027 025
MAX_LAYERS = MAX_LENGTH // 2

Cycle = tuple[int, ...]  # matrix j as written: j; transposed: j + k


@dataclass(frozen=True, eq=False)
class _Plan:
    """Cycles by length (start in the flat list follows the order of lengths), and the terms made of them."""

    cycles_by_length: tuple[Tensor, ...]
    terms_TC: Tensor
    counts_T: Tensor
    powers_T: Tensor


def expected_word(matrices: Sequence[Tensor], Sigma: Tensor, context: int) -> Tensor:
    """E tr(S X_1 S X_2 ... S X_k) for k <= 6, over any leading axes of X_j (..., D, D); differentiable."""
    k = len(matrices)
    if not 1 <= k <= MAX_LENGTH:
        raise ValueError(f"a word of length {k}: (2k-1)!! pairings, must be from 1 to {MAX_LENGTH}")
    if context < 1:
        raise ValueError(f"context={context}: must be at least 1")
    plan = _plan(k)
    X = torch.stack(torch.broadcast_tensors(*matrices), -3)
    factors = torch.cat([X, X.mT], -3) @ Sigma.unsqueeze(-3)
    pairs = (factors.unsqueeze(-3) @ factors.unsqueeze(-4)).flatten(-4, -3)
    traces = [_traces(factors, pairs, cycles) for cycles in plan.cycles_by_length]
    one = traces[0].new_ones(*traces[0].shape[:-1], 1)  # fills up terms of fewer than k cycles
    traces_C = torch.cat([*traces, one], -1)
    factors_TC = traces_C.index_select(-1, plan.terms_TC.flatten()).unflatten(-1, plan.terms_TC.shape)
    weights_T = plan.counts_T * float(context) ** plan.powers_T
    return factors_TC.prod(-1) @ weights_T


def sparse_a_risk(A_LDD: Tensor, Sigma: Tensor, Sigma_w: Tensor, context: int) -> Tensor:
    """Exact risk of ahn's family (8) at any weights A (..., L, D, D), L <= 3; differentiable.

    Risk = E tr(Sigma_w K Sigma K^T) with K = (I - S A_0) ... (I - S A_{L-1}), expanded into words of length
    up to 2L.
    """
    layers = A_LDD.shape[-3]
    if not 1 <= layers <= MAX_LAYERS:
        raise ValueError(
            f"layers={layers}: words of length {2 * layers}; the exact risk off S is for L <= {MAX_LAYERS}"
        )
    A = A_LDD.unbind(-3)
    subsets = [chosen for size in range(layers + 1) for chosen in combinations(range(layers), size)]
    words: dict[int, list[tuple[int, list[Tensor]]]] = defaultdict(list)
    for place, left in enumerate(subsets):
        for right in subsets[: place + 1]:
            if left:
                word = _word([A[layer] for layer in left], [A[layer] for layer in right], Sigma, Sigma_w)
                # left and right swapped is the transposed word, of equal trace
                multiplicity = (1 if left == right else 2) * (-1) ** (len(left) + len(right))
                words[len(word)].append((multiplicity, word))
    total = (Sigma_w * Sigma).sum().expand(A_LDD.shape[:-3])
    for of_one_length in words.values():
        multiplicities, matrices = zip(*of_one_length, strict=True)
        columns = [torch.stack(torch.broadcast_tensors(*X), -3) for X in zip(*matrices, strict=True)]
        total = total + expected_word(columns, Sigma, context) @ total.new_tensor(multiplicities)
    return total


def _word(left: list[Tensor], right: list[Tensor], Sigma: Tensor, Sigma_w: Tensor) -> list[Tensor]:
    """Return the word of tr(Sigma_w (S L_1 ... S L_i) Sigma (S R_1 ... S R_j)^T)."""
    if not right:
        return [*left[:-1], left[-1] @ Sigma @ Sigma_w]
    middle = left[-1] @ Sigma @ right[-1].mT
    return [*left[:-1], middle, *(R.mT for R in reversed(right[:-1])), Sigma_w]


def _traces(factors: Tensor, pairs: Tensor, cycles_CK: Tensor) -> Tensor:
    """Traces (..., C) of the products of factors along the cycles; `pairs` are those of any two of them."""
    steps = cycles_CK.unbind(-1)
    at = [i * factors.shape[-3] + j for i, j in zip(steps[::2], steps[1::2], strict=False)]
    pieces = [pairs.index_select(-3, pair_C) for pair_C in at]
    if len(steps) % 2:
        pieces.append(factors.index_select(-3, steps[-1]))
    if len(pieces) == 1:
        return pieces[0].diagonal(dim1=-2, dim2=-1).sum(-1)
    return (reduce(torch.matmul, pieces[:-1]) * pieces[-1].mT).sum((-1, -2))


@lru_cache(maxsize=MAX_LENGTH)
def _plan(k: int) -> _Plan:
    terms: Counter[tuple[int, tuple[Cycle, ...]]] = Counter()
    for pairing in _pairings(tuple(range(2 * k))):
        partner = {end: other for pair in pairing for end, other in (pair, pair[::-1])}
        terms[(_groups(pairing, k) - k, _cycles(partner, k))] += 1
    cycles = sorted({cycle for _, term in terms for cycle in term}, key=lambda cycle: (len(cycle), cycle))
    place = {cycle: index for index, cycle in enumerate(cycles)}
    lengths = sorted({len(cycle) for cycle in cycles})
    return _Plan(
        tuple(torch.tensor([cycle for cycle in cycles if len(cycle) == length]) for length in lengths),
        torch.tensor([[*(place[c] for c in term), *[len(cycles)] * (k - len(term))] for _, term in terms]),
        torch.tensor([float(count) for count in terms.values()], dtype=torch.float64),
        torch.tensor([float(power) for power, _ in terms], dtype=torch.float64),
    )


def _pairings(ends: tuple[int, ...]) -> Iterator[list[tuple[int, int]]]:
    if not ends:
        yield []
        return
    for place in range(1, len(ends)):
        for others in _pairings(ends[1:place] + ends[place + 1 :]):
            yield [(ends[0], ends[place]), *others]


def _groups(pairing: list[tuple[int, int]], k: int) -> int:
    """Count the groups of copies of S that share a token. Copy j has ends 2j (left) and 2j + 1 (right)."""
    group = list(range(k))
    for end, other in pairing:
        kept, merged = group[end // 2], group[other // 2]
        group = [kept if label == merged else label for label in group]
    return len(set(group))


def _cycles(partner: dict[int, int], k: int) -> tuple[Cycle, ...]:
    """X_j joins the right end of copy j to the left end of copy j + 1; Sigma joins partners."""
    cycles, unseen = [], set(range(k))
    while unseen:
        end = 2 * min(unseen) + 1
        cycle: list[int] = []
        while True:
            forward = end % 2 == 1
            matrix = end // 2 if forward else (end // 2 - 1) % k
            if matrix not in unseen:
                break
            unseen.remove(matrix)
            cycle.append(matrix if forward else matrix + k)
            end = partner[2 * ((matrix + 1) % k) if forward else 2 * matrix + 1]
        cycles.append(tuple(cycle))
    return tuple(sorted(cycles))
