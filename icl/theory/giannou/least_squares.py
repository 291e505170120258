"""Lemma 4.1, Theorem 4.2 and Remark 4.4 of giannou: Newton's iteration X <- X (2 I - R X) by layers of
attention.

Lemma 4.1: rows X, A, Z and I of d each. Theorem 4.2: X, R, I and A of d each and t (the query), y and out of
one, from [I; I; I; A^T; a_test^T; y^T; 0] to out[0] = y^T A X_T a_test where R = A^T A + mu I and
X_0 = epsilon R.
"""

from flint import fmpq, fmpq_mat

from icl.theory.giannou.columns import FIRST, IDENTITY, Head, Layer, State, padded
from icl.theory.rationals import identity, reflection

ZERO = fmpq(0)


def two_layers(stored: str = "A", restored: bool = False) -> list[Layer]:
    """X <- 2 X - X A X with A itself in the block `stored`, Z zero before and after. `restored`: the last
    head also puts the identity into that block."""
    writes = {"X": {"X": 1}, "Z": {"Z": -1}}
    if restored:
        writes[stored] = {"I": 1, stored: -1}
    product = Head({"Z": {stored: 1}}, key=IDENTITY, query={"X": 1})
    curvature = Head({"X": {"X": 1}}, key=IDENTITY, query={"Z": -1})
    return [(product,), (curvature, Head(writes, key=IDENTITY, query=IDENTITY))]


def one_layer(stored: str = "A") -> Layer:
    """X <- 2 X - X A X with A^T in the block `stored`: the key is read transposed."""
    curvature = Head({"X": {"X": -1}}, key={stored: 1}, query={"X": 1})
    return (curvature, Head({"X": {"X": 1}}, key=IDENTITY, query=IDENTITY))


def theorem4_2(steps: int, epsilon: fmpq, mu: fmpq) -> list[Layer]:
    """Return the 3 + T layers; mu > 0 is Remark 4.4, at no further layer, head or row."""
    gram = Head({"X": {"A": epsilon}, "R": {"A": 1}}, key={"A": 1}, query=IDENTITY)
    # X and R hold the identity: taken away, and with it mu I brought in
    cleared = Head({"X": {"I": epsilon * mu - 1}, "R": {"I": mu - 1}}, key=IDENTITY, query=IDENTITY)
    weights = Head({"out": {"y": 1}}, key={"A": 1}, query={"X": 1})
    answer = Head({"out": {"out": 1}}, key={"t": 1}, query=FIRST)
    residual = Head({"out": {"out": -1}}, key=IDENTITY, query=IDENTITY)
    return [(gram, cleared), *[one_layer("R")] * steps, (weights,), (answer, residual)]


def prompt(A: fmpq_mat, y: fmpq_mat, test: fmpq_mat) -> State:
    """Return the prompt of Theorem 4.2, the query along the first d columns of its row."""
    n, d = A.nrows(), A.ncols()
    one = padded(identity(d), n)
    return {
        "X": one, "R": one, "I": one, "A": A.transpose(), "t": padded(test, n), "y": y, "out": fmpq_mat(1, n),
    }  # fmt: skip


def stated_layer(t: int, steps: int, H: State, epsilon: fmpq, mu: fmpq) -> State:
    """Return what layer t of Theorem 4.2 is said to make of H."""
    n, d = H["A"].ncols(), H["A"].nrows()
    if t == 0:
        R = H["A"] * H["A"].transpose() + mu * identity(d)
        return {**H, "X": padded(epsilon * R, n), "R": padded(R, n)}
    if t <= steps:
        return {**H, "X": 2 * H["X"] - H["X"] * H["R"].transpose() * H["X"]}
    if t == steps + 1:
        return {**H, "out": H["out"] + H["y"] * H["A"].transpose() * H["X"]}
    return {**H, "out": padded(H["out"] * H["t"].transpose(), n)}


def design(vectors: tuple[fmpq_mat, fmpq_mat], values: list[fmpq]) -> fmpq_mat:
    """Return an n x d matrix with these singular values: two reflections, along a vector of n and of d."""
    left, right = (reflection(v) for v in vectors)
    n, d = left.nrows(), right.nrows()
    middle = fmpq_mat(n, d, [values[i] if i == j else 0 for i in range(n) for j in range(d)])
    return left * middle * right


def norm_bound(R: fmpq_mat) -> fmpq:
    """Return the largest sum of a row, which no eigenvalue exceeds."""
    return max(sum(map(abs, row), ZERO) for row in R.tolist())
