"""How self-concordant giannou's regularised logistic loss (3.5) is, for points with |a_i| <= 1.

f(x) = 1/n sum_i log(1 + exp(-y_i <x, a_i>)) + mu/2 |x|^2 and phi(t) = f(x + t u), |u| = 1, have phi'' =
mean q c^2 + mu and |phi'''| = |mean q sqrt(1 - 4q) c^3| with c = <u, a_i> and q = p (1 - p) in (0, 1/4]. At
given v = q c^2 the second is at most g(v) = v sqrt(1 - 4v), which is concave: at a given mean of v one point
a = u is worst, and the supremum of |phi'''| / phi''^{3/2} is that of g(q) / (q + mu)^{3/2}.
"""

from collections.abc import Iterator
from random import Random

from flint import arb, arb_series, fmpq, fmpq_mat, fmpq_poly

Problem = tuple[fmpq_mat, list[int], fmpq_mat, fmpq_mat]


def worst(mu: fmpq) -> fmpq:
    """Return the q at which the supremum is attained."""
    return 2 * mu / (1 + 12 * mu)


def squared_supremum(mu: fmpq) -> fmpq:
    return 4 / (27 * mu * (1 + 4 * mu) ** 2)


def is_largest(squared: fmpq, mu: fmpq) -> bool:
    """Return whether no q in [0, 1/4] has a larger squared ratio: whether squared (q + mu)^3 - q^2 (1 - 4q)
    is (q - worst)^2 times a line that is positive there."""
    q = fmpq_poly([0, 1])
    line, rest = divmod(squared * (q + mu) ** 3 - q * q * (1 - 4 * q), (q - worst(mu)) ** 2)
    return rest == 0 and line(0) > 0 and line(fmpq(1, 4)) > 0


def ratio(A: fmpq_mat, y: list[int], mu: fmpq, x: fmpq_mat, u: fmpq_mat) -> arb:
    """Return |phi'''| / phi''^{3/2} at the column x along u, of any length, from f itself."""
    length = sum(e * e for e in u.entries())
    series = arb_series([0], prec=4)
    for label, at, along in zip(y, (A * x).entries(), (A * u).entries(), strict=True):
        series += (1 + arb_series([-label * at, -label * along], prec=4).exp()).log() / len(y)
    second, third = 2 * series[2] + mu * length, 6 * series[3]
    return abs(third) / second ** arb(1.5)


def drawn(problems: int, points: int, dim: int, rng: Random) -> Iterator[Problem]:
    """Yield points in the unit ball, labels, x and u."""

    def column(size: int) -> fmpq_mat:
        return fmpq_mat(dim, 1, [fmpq(rng.choice((-1, 1)) * rng.randint(1, 9), size) for _ in range(dim)])

    for _ in range(problems):
        A = fmpq_mat([column(9 * dim).transpose().tolist()[0] for _ in range(points)])
        yield A, [rng.choice((-1, 1)) for _ in range(points)], column(1), column(1)
