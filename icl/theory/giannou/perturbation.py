"""Corollary E.2 and (E.5) of giannou: the inverse and the condition of H + E, H symmetric with H >= mu I.

(H + E)^{-1} - H^{-1} = -H^{-1} E (H + E)^{-1}, where |H^{-1}| <= 1/mu and |(H + E)^{-1}| <= 1/(mu - |E|) for
|E| < mu, with equality at H = mu I, E = -e I. H and E are rational, norms are balls.
"""

from collections.abc import Iterator
from random import Random

from flint import arb, fmpq, fmpq_mat

from icl.theory.rationals import diagonal, identity
from icl.theory.roots import real_roots


def spectrum(M: fmpq_mat) -> list[arb]:
    """Return the different eigenvalues of a symmetric matrix, rising."""
    return real_roots(M.charpoly())


def norm(M: fmpq_mat) -> arb:
    return spectrum(M.transpose() * M)[-1].sqrt()


def inverse_share(H: fmpq_mat, E: fmpq_mat, mu: fmpq) -> arb:
    """Return |(H + E)^{-1} - H^{-1}| over the bound |E| / (mu (mu - |E|))."""
    size = norm(E)
    return norm((H + E).inv() - H.inv()) * mu * (mu - size) / size


def condition_gaps(H: fmpq_mat, E: fmpq_mat) -> tuple[arb, arb]:
    """Return the upper bound (E.5) on the condition of H + E less it, and it less the lower bound, E
    symmetric."""
    h, e, b = spectrum(H), spectrum(E), spectrum(H + E)
    kappa = b[-1] / b[0]
    return (h[-1] + e[-1]) / (h[0] + e[0]) - kappa, kappa - (h[-1] + e[0]) / (h[0] + e[-1])


def drawn(count: int, points: int, dim: int, mu: fmpq, rng: Random) -> Iterator[tuple[fmpq_mat, fmpq_mat]]:
    """Yield Hessians A^T D A / n + mu I with 0 < D <= 1/4 and errors E with |E| a share of mu."""

    def entries(rows: int) -> fmpq_mat:
        return fmpq_mat(rows, dim, [rng.choice((-1, 1)) * rng.randint(1, 9) for _ in range(rows * dim)])

    for _ in range(count):
        A, E = entries(points) / (9 * dim), entries(dim)
        D = diagonal([fmpq(rng.randint(1, 25), 100) for _ in range(points)])
        size = norm(E).mid().fmpq()
        yield (
            A.transpose() * D * A / points + mu * identity(dim),
            E * mu * fmpq(rng.randint(1, 95), 100) / size,
        )
