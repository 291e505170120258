"""The curvature at the best multiple of I along an antisymmetric matrix: its limit, its last change of sign.

G = I + X / sqrt(n) as n grows, X symmetric and Gaussian with variance 1 off the diagonal and 2 on it (GOE).
"""

from functools import cache
from typing import Any

from flint import Ordering, arb, fmpq, fmpq_mat, fmpq_mpoly_ctx, fmpq_poly

from icl.theory.blurred import Blurred
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.roots import real_roots

RING = fmpq_mpoly_ctx.get(["a", "n"], Ordering.lex)
D = fmpq_poly([0, 1])


@cache
def goe_moment(powers: tuple[int, ...]) -> fmpq_poly:
    """Return E prod_i tr X^(k_i) as a polynomial in d, by Stein's identity for one X; `powers` fall."""
    if not powers or powers[0] == 0:
        return D ** len(powers)
    k, others = powers[0], powers[1:]

    def mean(*parts: int) -> fmpq_poly:
        return goe_moment(tuple(sorted(parts, reverse=True)))

    total = fmpq_poly()
    if k > 1:
        total = (k - 1) * mean(k - 2, *others)
        total += sum((mean(i, k - 2 - i, *others) for i in range(k - 1)), fmpq_poly())
    for j, power in enumerate(others):
        if power:
            total += 2 * power * mean(k + power - 2, *others[:j], *others[j + 1 :])
    return total


def limit_curvature(layers: int) -> fmpq_poly:
    """Return c_oo, to which n^(L - 1) c(a*) tends, as a polynomial in d.

    c = E sum_(p != q) ((g_p + g_q)^2 h_L^2 / 2 - L g_p g_q h_(2L-1)) / d(d - 1), h_k the sum of m_p^i
    m_q^(k-1-i), and m = 1 - a* g = -x / sqrt(n) + O(1 / n), g = 1 + O(1 / sqrt n).
    """
    top = 2 * layers - 2
    total = -layers * goe_moment((top,))
    for k in range(top + 1):
        weight = 2 * min(k + 1, top + 1 - k) - layers
        total += weight * goe_moment(tuple(sorted((k, top - k), reverse=True)))
    return total / (D * (D - 1))


def negative_from(poly: fmpq_poly, first: int) -> bool:
    """Return whether no coefficient in powers of d - `first` is positive: a proof for every d."""
    shifted = poly(fmpq_poly([first, 1]))
    return shifted(0) < 0 and all(c <= 0 for c in shifted.coeffs())


def resultant(dim: int, layers: int) -> fmpq_poly:
    """Return a polynomial in n, the resultant in a of n^2L df(aI)/da and n^2L c(a)."""
    nodes = [EqualSteps(dim, n, layers) for n in range(1, 2 * layers + 2)]
    slope = in_both([one.polynomial.derivative() for one in nodes], layers)
    found = slope.resultant(in_both([one.antisymmetric_curvature for one in nodes], layers), "a")
    if found == 0:
        raise AssertionError(f"d = {dim}, L = {layers}: df/da and c have a factor in common at every n")
    coefficients = {int(power): value for (_, power), value in found.terms()}
    return fmpq_poly([coefficients.get(i, fmpq(0)) for i in range(max(coefficients) + 1)])


def last_change(dim: int, layers: int) -> arb:
    """Return the largest real n at which the curvature at the best a I may change its sign.

    It is d, or the largest real root of the resultant.
    For real n > d - 1 Wishart's law exists and f(aI) is strictly convex in a, so that a* moves continuously.
    """
    return max([arb(dim), *real_roots(resultant(dim, layers))], key=float)


def next_whole(x: arb) -> int:
    """Return the least integer above x."""
    if (below := x.floor().unique_fmpz()) is None:
        raise Blurred
    return int(below) + 1


def in_both(values: list[fmpq_poly], layers: int) -> Any:
    """Return n^2L times a polynomial in a, given at n = 1, 2, .., 2L + 1, as one in a and n."""
    count, width = len(values), max(value.length() for value in values)
    powers = fmpq_mat([[fmpq(n) ** k for k in range(count)] for n in range(1, count + 1)])
    rows = [[n ** (2 * layers) * value[i] for i in range(width)] for n, value in enumerate(values, 1)]
    a, n = RING.gens()
    solved = powers.solve(fmpq_mat(rows)).tolist()
    return sum((c * a**i * n**k for k, row in enumerate(solved) for i, c in enumerate(row)), RING.constant(0))
