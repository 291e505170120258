"""Degrees and residuals of the polynomials in A that layers of attention and Newton's iteration build."""

from math import comb
from random import Random

from flint import fmpq, fmpq_poly, fmpz_poly

A = fmpz_poly([0, 1])


def attention_degrees(layers: int, rng: Random) -> list[int]:
    """Return the highest power of a in H after each layer of one head with random weights, H_0 = [a; 1].

    One token; with a matrix A for a and I for 1 the powers are those of A. Weights are positive, so that
    nothing cancels, and terms below the leading one are dropped.
    """
    H, found = [A, fmpz_poly([1])], []
    for _ in range(layers):
        V, K, Q = ([[rng.randint(1, 5) for _ in H] for _ in H] for _ in "VKQ")
        value, key, query = (
            [sum(w * h for w, h in zip(row, H, strict=True)) for row in W] for W in (V, K, Q)
        )
        score = sum(k * q for k, q in zip(key, query, strict=True))
        H = [leading(h + v * score) for h, v in zip(H, value, strict=True)]
        found.append(max(h.degree() for h in H))
    return found


def newton_degrees(order: int, steps: int) -> list[int]:
    """Return the degree of X_t by (3.4) as printed, from X_0 = a."""
    X, found = A, []
    for _ in range(steps):
        X = leading(X * sum((-1) ** m * comb(order, m + 1) * (A * X) ** m for m in range(order)))
        found.append(X.degree())
    return found


def leading(p: fmpz_poly) -> fmpz_poly:
    return fmpz_poly([0] * p.degree() + [1])


def best_residual(degree: int, kappa: fmpq) -> fmpq:
    """Return the least max |1 - a q(a)| over a in [1, kappa] and q of this degree: Chebyshev's."""
    return 1 / fmpq_poly(fmpz_poly.chebyshev_t(degree + 1))((kappa + 1) / (kappa - 1))


def newton_residual(order: int, steps: int, kappa: fmpq) -> fmpq:
    """Return max |1 - a X_t(a)| over [1, kappa] from the authors' X_0 = a / (1 + kappa^2)."""
    return (kappa**2 / (1 + kappa**2)) ** (order**steps)
