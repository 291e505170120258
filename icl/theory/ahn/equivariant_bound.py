"""A lower bound on the risk of ahn's family (8) over all A, w ~ N(0, Sigma^{-1}): exact, in rationals.

Whitened, the risk is E tr(K K^T) with K = prod_l (I - S A_l) = I + S T(S), T(S) a matrix of polynomials of
degree L - 1 in the entries of S. Over all such T it is convex, and as S is Wishart it does not change under
T(.) -> R^T T(R . R^T) R for an orthogonal R: the mean of a best T over all R is a best one. Such a T is a
combination of S^j prod_i tr(S^{m_i}), so that a quadratic form in a few coefficients is left. At L = 1 the
bound is attained.

D = `dim`, N = `context` tokens, T terms.
"""

from collections.abc import Iterator, Sequence

from flint import fmpq, fmpq_mat

from icl.theory.wishart import product_moment

Term = tuple[int, tuple[int, ...]]  # S^power, and the powers under the traces


def equivariant_bound(dim: int, context: int, layers: int) -> fmpq:
    """Return the least E tr(K K^T) over K = I + the span of all terms."""
    if layers < 1:
        raise ValueError(f"layers={layers}: must be at least 1")
    terms = terms_of(layers)

    def moment(power: int, traces: Sequence[int]) -> fmpq:
        degree = power + sum(traces)
        return fmpq(product_moment([power, *traces], dim, context), context**degree)

    linear_T = [moment(power, under) for power, under in terms]
    form_TT = [[moment(p + q, [*under, *other]) for q, other in terms] for p, under in terms]
    solved, rank = fmpq_mat([[*row, entry] for row, entry in zip(form_TT, linear_T, strict=True)]).rref()
    # terms that others span, as at small D, have no pivot and are left out
    pivots = [next(j for j in range(len(terms)) if solved[i, j] != 0) for i in range(rank)]
    return dim - sum((solved[i, len(terms)] * linear_T[j] for i, j in enumerate(pivots)), fmpq(0))


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
