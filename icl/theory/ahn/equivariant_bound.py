"""A lower bound on the risk of ahn's family (8) over all A, w ~ N(0, Sigma^{-1}): exact, in rationals.

Whitened, the risk is E tr(K K^T) with K = prod_l (I - S A_l) = I + S T(S), T(S) a matrix of polynomials of
degree L - 1 in the entries of S. Over all such T it is convex, and as S is Wishart it does not change under
T(.) -> R^T T(R . R^T) R for an orthogonal R: the mean of a best T over all R is a best one. Such a T is a
combination of S^j prod_i tr(S^{m_i}), so that a quadratic form in a few coefficients is left. At L = 1 the
bound is attained.

D = `dim`, N = `context` tokens, T terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from icl.theory.wishart import product_moment

Term = tuple[int, tuple[int, ...]]  # S^power, and the powers under the traces


def equivariant_bound(dim: int, context: int, layers: int) -> Fraction:
    """Least E tr(K K^T) over K = I + the span of all terms."""
    return equivariant_optimum(dim, context, layers)[0]


def equivariant_optimum(dim: int, context: int, layers: int) -> tuple[Fraction, dict[Term, Fraction]]:
    """Return that bound, and the coefficients of the K that attains it.

    That K is orthogonal to every K' - K of the span, and so to those of all A: E tr(K K'^T) is the bound.
    """
    if layers < 1:
        raise ValueError(f"layers={layers}: must be at least 1")
    terms = terms_of(layers)

    def moment(power: int, traces: Sequence[int]) -> Fraction:
        degree = power + sum(traces)
        return Fraction(product_moment([power, *traces], dim, context), context**degree)

    form_TT = [[moment(p + q, [*under, *other]) for q, other in terms] for p, under in terms]
    linear_T = [moment(power, under) for power, under in terms]
    solution_T = _solution(form_TT, linear_T)
    found = sum((x * entry for x, entry in zip(solution_T, linear_T, strict=True)), Fraction(0))
    return dim - found, {term: -x for term, x in zip(terms, solution_T, strict=True)}


def terms_of(layers: int) -> list[Term]:
    """S^power prod tr(S^m), power at least 1, of degree at most `layers`."""
    return [
        (power, traces)
        for degree in range(1, layers + 1)
        for power in range(1, degree + 1)
        for traces in _partitions(degree - power, degree)
    ]


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for others in _partitions(total - part, part):
            yield (part, *others)


def _solution(form_TT: list[list[Fraction]], linear_T: list[Fraction]) -> list[Fraction]:
    """form^{-1} linear by elimination; terms that others span, as at small D, are left out."""
    rows = [[*row, entry] for row, entry in zip(form_TT, linear_T, strict=True)]
    kept: list[int] = []
    for k in range(len(rows)):
        if rows[k][k] == 0:
            continue
        kept.append(k)
        for later in range(k + 1, len(rows)):
            factor = rows[later][k] / rows[k][k]
            rows[later] = [x - factor * y for x, y in zip(rows[later], rows[k], strict=True)]
    solution = [Fraction(0)] * len(rows)
    for k in reversed(kept):
        rest = sum((rows[k][j] * solution[j] for j in kept if j > k), Fraction(0))
        solution[k] = (rows[k][-1] - rest) / rows[k][k]
    return solution
