"""The shared layer of eq. (8) over tokens (x, w.x), and the same in coordinates in which Sigma is the
identity."""

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.theory.rationals import diagonal, identity


def predicted(A: arb_mat, X: arb_mat, w: arb_mat, query: arb_mat, context: int, loops: int) -> arb:
    """Return the prediction for the query: every loop subtracts (1/n) sum_i y_i x_i^T A x from each label."""
    labels, entry = X * w, arb(0)
    for _ in range(loops):
        row = labels.transpose() * X * A * arb(fmpq(1, context))
        entry -= (row * query)[0, 0]
        labels -= X * row.transpose()
    return -entry


def whitened(A: arb_mat, U: arb_mat, v: arb_mat, query: arb_mat, context: int, loops: int) -> arb:
    """Return v.u - v.(I - G A)^L u, the prediction by G, the mean of u u^T."""
    left, unchanged = v.transpose(), (v.transpose() * query)[0, 0]
    for _ in range(loops):
        left -= left * (U.transpose() * U) * A * arb(fmpq(1, context))
    return unchanged - (left * query)[0, 0]


def paths_error(A: fmpq_mat, sigma: fmpq_mat, context: int, loops: int, at_tokens: int | None = None) -> arb:
    """Return the difference of the two at a prompt of Sigma: x = F u, w = F^-T v, and F^-T A F^-1 in the
    place of A."""
    d = A.nrows()
    count = min(context, 2 * d)
    U = arb_mat(
        [[fmpq((7 * i * i + 5 * i * k + 3 * k + 1) % 11 - 5, 4) for k in range(d)] for i in range(count)]
    )
    v, query = (arb_mat(d, 1, [fmpq((k * k + s * k + s) % 7 - 3, 2) for k in range(d)]) for s in (1, 2))
    F = root(sigma)
    back = F.inv()
    seen = back.transpose() * arb_mat(A) * back
    by_tokens = predicted(
        seen, U * F.transpose(), back.transpose() * v, F * query, context, at_tokens or loops
    )
    return by_tokens - whitened(arb_mat(A), U, v, query, context, loops)


def root(sigma: fmpq_mat) -> arb_mat:
    """Return Cholesky's factor: F F^T = Sigma."""
    d = sigma.nrows()
    lower, rest, scale = identity(d), fmpq_mat(sigma), []
    for k in range(d):
        scale.append(arb(rest[k, k]).sqrt())
        for i in range(k + 1, d):
            lower[i, k] = rest[i, k] / rest[k, k]
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                rest[i, j] -= lower[i, k] * rest[k, j]
    factors = arb_mat(d, d, [scale[i] if i == j else 0 for i in range(d) for j in range(d)])
    return arb_mat(lower) * factors


def turned(dim: int, a: fmpq, b: fmpq, planes: int) -> fmpq_mat:
    """Return a I + b K, K the rotation by 90 degrees in the given number of planes."""
    A = diagonal([a] * dim)
    for k in range(planes):
        A[2 * k, 2 * k + 1], A[2 * k + 1, 2 * k] = -b, b
    return A
