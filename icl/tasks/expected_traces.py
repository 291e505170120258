"""Expected traces of words in a sample covariance S = (1/N) sum x x^T, x ~ N(0, Sigma), and fixed matrices.

By Wick's formula E tr(S X_1 S X_2 ... S X_k) is a sum over the (2k-1)!! pairings of the 2k vectors. A
pairing joins the k copies of S into groups that share one context token, worth N^(groups - k), and the
matrices into cycles, each worth the trace of a product of X_j Sigma and X_j^T Sigma. k length of the word,
C distinct cycles, T distinct terms, F triples, L layers, D covariates.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, product

import torch
from torch import Tensor

MAX_LENGTH = 6  # 10395 pairings; length 8 would have 2 027 025
MAX_LAYERS = MAX_LENGTH // 2

Cycle = tuple[int, ...]  # matrix j as written: j; transposed: j + k
# Products of at most three matrices each: of how many, and the places in the table of such products.
Places = tuple[int, Tensor]


@dataclass(frozen=True, eq=False)
class _Terms:
    """Terms of as many cycles each, their number among equal ones and their power of N."""

    cycles_TC: Tensor
    counts_T: Tensor
    powers_T: Tensor


@dataclass(frozen=True, eq=False)
class _Plan:
    """The triples among the halves, the two halves of the cycles by length, and the terms made of cycles."""

    triples_FK: Tensor
    halves_by_length: tuple[tuple[Places, ...], ...]
    terms: tuple[_Terms, ...]


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
    first, second, third = plan.triples_FK.unbind(-1)
    triples = pairs.index_select(-3, 2 * k * first + second) @ factors.index_select(-3, third)
    products = {1: factors, 2: pairs, 3: triples}
    traces_C = torch.cat([_traces(products, halves) for halves in plan.halves_by_length], -1)
    return sum((_sum_of_terms(traces_C, terms, context) for terms in plan.terms), traces_C.new_zeros(()))


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


def _traces(products: Mapping[int, Tensor], halves: Sequence[Places]) -> Tensor:
    """Traces (..., C) of the cycles that have these halves."""
    left, *right = [products[width].index_select(-3, place_C) for width, place_C in halves]
    if not right:
        return left.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (left * right[0].mT).sum((-1, -2))


def _sum_of_terms(traces_C: Tensor, terms: _Terms, context: int) -> Tensor:
    factors = [traces_C.index_select(-1, cycle_T) for cycle_T in terms.cycles_TC.unbind(-1)]
    return reduce(torch.mul, factors) @ (terms.counts_T * float(context) ** terms.powers_T)


@lru_cache(maxsize=MAX_LENGTH)
def _plan(k: int) -> _Plan:
    terms: Counter[tuple[int, tuple[Cycle, ...]]] = Counter()
    for pairing in _pairings(tuple(range(2 * k))):
        partner = {end: other for pair in pairing for end, other in (pair, pair[::-1])}
        terms[(_groups(pairing, k) - k, _cycles(partner, k))] += 1
    cycles = sorted({cycle for _, term in terms for cycle in term}, key=lambda cycle: (len(cycle), cycle))
    place = {cycle: index for index, cycle in enumerate(cycles)}
    halves = {cycle: (cycle[: (len(cycle) + 1) // 2], cycle[(len(cycle) + 1) // 2 :]) for cycle in cycles}
    triples: list[Cycle] = sorted({half for both in halves.values() for half in both if len(half) == 3})
    tables: list[list[Cycle]] = [*([*product(range(2 * k), repeat=width)] for width in (1, 2)), triples]
    places = {half: index for table in tables for index, half in enumerate(table)}

    def columns(length: int) -> tuple[Places, ...]:
        both = zip(*(halves[cycle] for cycle in cycles if len(cycle) == length), strict=True)
        return tuple(
            (len(side[0]), torch.tensor([places[half] for half in side])) for side in both if side[0]
        )

    def terms_of(count: int) -> _Terms:
        chosen = [(term, power, many) for (power, term), many in terms.items() if len(term) == count]
        numbers, powers, counts = zip(*chosen, strict=True)
        cycles_TC = torch.tensor([[place[cycle] for cycle in term] for term in numbers])
        return _Terms(cycles_TC, *(torch.tensor(n, dtype=torch.float64) for n in (counts, powers)))

    return _Plan(
        torch.tensor(triples, dtype=torch.long).reshape(-1, 3),
        tuple(columns(length) for length in sorted({len(cycle) for cycle in cycles})),
        tuple(terms_of(count) for count in range(1, k + 1)),
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
