"""One layer of ReLU attention: the exact risk, in rationals. x ~ N(0, I), w ~ N(0, I), n examples, y = w.x.

b_0 and b_1 are the last row of P, A is the block of Q, whose last row is 0; its last column meets the query's
label, which is 0. What a token gives is relu(x.u) times a linear form in x, u = A x_q: even in x, so that
its mean is half of that without the ReLU, and of two tokens a quarter.
"""

from flint import fmpq, fmpq_mat

from icl.theory.rationals import dot, trace, unit


def relu_layer_risk(b_0: fmpq_mat, b_1: fmpq, A: fmpq_mat, n: fmpq) -> fmpq:
    """Return E (y_q + w.x_q)^2 of the layer; b_0 is a column."""
    size, moved = dot(A, A), A.transpose() * b_0
    labels = b_1**2 * curvature(A.nrows(), n) * size + b_1 * trace(A) + A.nrows()
    spread, drift = terms_of_b_0(n)
    return labels + spread * dot(b_0, b_0) * size + drift * dot(moved, moved)


def steepest(A: fmpq_mat, n: fmpq) -> fmpq:
    """Return the largest entry of the gradient in b_1 and A at b = (0, 1): the risk is quadratic in each, and
    even in b_0."""
    d, zero, one = A.nrows(), fmpq_mat(A.nrows(), 1), fmpq(1)
    steps = [unit(i, j, d) for i in range(d) for j in range(d)]
    sides = [[relu_layer_risk(zero, one, A + s * step, n) for s in (1, -1)] for step in steps]
    sides.append([relu_layer_risk(zero, s, A, n) for s in (fmpq(2), fmpq(0))])
    return max(abs(up - down) / 2 for up, down in sides)


def curvature(d: int, n: fmpq) -> fmpq:
    """Return the factor of |b_1 A|^2."""
    return (2 * (d + 2) + n - 1) / (4 * n)


def terms_of_b_0(n: fmpq) -> tuple[fmpq, fmpq]:
    """Return the factors of |b_0|^2 |A|^2 and of |A^T b_0|^2."""
    return 1 / (2 * n), (n + 3) / (4 * n)
