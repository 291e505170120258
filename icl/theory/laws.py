"""A law of prompts, moments under it, and exact risks of layers of ahn's eq. (8): docs/vocabulary.md.

x ~ N(0, sigma), w ~ N(0, task), y = w.x + e, e of variance `noise`, n examples; the query x_q ~ N(0, test).
S = X^T X / n. A layer A moves the weights by A^T X^T r / n, r the residuals. The risk is E (x_q.(w - w_L))^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flint import fmpq, fmpq_mat

from icl.theory.one_layer import OneLayer, products
from icl.theory.rationals import diagonal, identity, matrix, rational, trace
from icl.theory.wishart import covariance_moments
from icl.theory.words import Drawn, stack_risk


@dataclass(frozen=True)
class Law:
    """`sigma`, `task` and `test` are a matrix, its rows, a list of eigenvalues, or d for the identity."""

    sigma: Any
    n: Any
    task: Any = None  # the identity
    noise: Any = 0
    test: Any = None  # sigma

    def __post_init__(self) -> None:
        if rational(self.n) < 1 or rational(self.noise) < 0:
            raise ValueError(f"Law: n={self.n}, noise={self.noise}: n is 1 at least, noise 0")

    @cached_property
    def covariances(self) -> tuple[fmpq_mat, fmpq_mat, fmpq_mat]:
        """Return sigma, task and test as matrices."""
        sigma = as_matrix(self.sigma)
        task = as_matrix(sigma.nrows() if self.task is None else self.task)
        test = sigma if self.test is None else as_matrix(self.test)
        if not sigma.nrows() == task.nrows() == test.nrows():
            raise ValueError("Law: sigma, task and test have different dimensions")
        return sigma, task, test

    @cached_property
    def label_form(self) -> fmpq_mat:
        """E g g^T, g = X^T y / n."""
        sigma, task, _ = self.covariances
        return OneLayer(sigma, self.n, task).label_form + rational(self.noise) / rational(self.n) * sigma


def as_matrix(given: Any) -> fmpq_mat:
    """Return a covariance as a matrix, and refuse what is none."""
    if isinstance(given, int):
        found = identity(max(given, 0))
    elif isinstance(given, fmpq_mat):
        found = given
    else:
        rows = list(given)
        found = matrix(rows) if rows and isinstance(rows[0], list | tuple) else diagonal(rows)
    if found.nrows() < 1 or found != found.transpose():
        raise ValueError(f"{given}: is no covariance, which is symmetric, of one dimension at least")
    if any(c * (-1) ** k < 0 for k, c in enumerate(reversed(found.charpoly().coeffs()))):
        raise ValueError(f"{given}: is no covariance, which has no eigenvalue below 0")
    return found


def moment(letters: Sequence[Any], law: Law) -> fmpq:
    """Return E tr(S X_1 S X_2 .. S X_k). A letter is a matrix, or a number for a multiple of the identity."""
    sigma = law.covariances[0]
    return Drawn(sigma, law.n).trace([_layer(x, sigma.nrows()) for x in letters])


def gaussian(indices: Sequence[int], sigma: Any) -> fmpq:
    """Return E x_i x_j x_k .. of x ~ N(0, sigma), by Isserlis' pairings."""
    if not indices:
        return fmpq(1)
    x, (first, *rest) = as_matrix(sigma), indices
    pairs = (x[first, other] * gaussian([*rest[:k], *rest[k + 1 :]], x) for k, other in enumerate(rest))
    return sum(pairs, fmpq(0))


def risk(layers: Sequence[Any], law: Law) -> Any:
    """Return the risk of a stack: each layer a matrix A, or a number a for a I. Numbers at identities may be
    polynomials (flint.fmpq_mpoly)."""
    sigma, task, test = law.covariances
    d = sigma.nrows()
    if sigma == task == test == identity(d) and not any(isinstance(a, fmpq_mat) for a in layers):
        return _scalar_risk(layers, d, law)
    return stack_risk([_layer(a, d) for a in layers], law.n, sigma, task, law.noise, test)


def _layer(given: Any, d: int) -> fmpq_mat:
    return given if isinstance(given, fmpq_mat) else rational(given) * identity(d)


def _scalar_risk(layers: Sequence[Any], d: int, law: Law) -> Any:
    error, noise = [fmpq(1)], [fmpq(0)]  # coefficients of powers of S
    for a in layers:
        error, noise = ([x - a * y for x, y in zip([*c, 0], [0, *c], strict=True)] for c in (error, noise))
        noise[0] += a
    m = covariance_moments(d, int(law.n), 2 * len(layers) + 2)
    share = rational(law.noise) / rational(law.n)
    pairs = [(i, j) for i in range(len(error)) for j in range(len(error))]
    return sum(
        (error[i] * error[j] * m[i + j] + share * noise[i] * noise[j] * m[i + j + 1] for i, j in pairs),
        fmpq(0),
    )


def layer_risk(P: fmpq_mat, Q: fmpq_mat, law: Law) -> fmpq:
    """Return the risk of one full layer Z + P Z M Z^T Q Z / n as printed, read out with a minus."""
    sigma, task, test = law.covariances
    if law.noise or test != sigma:
        raise ValueError("layer_risk: takes no noise, and test = sigma")
    return OneLayer(sigma, law.n, task).risk(products(P, Q))


def optimum(law: Law) -> fmpq_mat:
    """Return the A of least risk of one layer, the same for every `test`; no P and Q have less."""
    sigma, task, _ = law.covariances
    return law.label_form.solve(sigma * task)


def least_risk(law: Law) -> fmpq:
    """Return the least risk of one layer over all P and Q."""
    sigma, task, test = law.covariances
    return trace(test * (task - task * sigma * optimum(law)))


def sampled_risk(
    layers: Sequence[Any], law: Law, prompts: int = 20_000, seed: int = 0
) -> tuple[float, float]:
    """Return the mean and its standard error over random prompts that run through the layers, in floats."""
    import numpy as np

    rng, n = np.random.default_rng(seed), int(law.n)
    sigma, task, test = (np.array([[float(e) for e in row] for row in x.tolist()]) for x in law.covariances)
    zero = np.zeros(len(sigma))
    left, query = (rng.multivariate_normal(zero, x, prompts) for x in (task, test))
    X = rng.multivariate_normal(zero, sigma, (prompts, n))
    r = np.einsum("bnd,bd->bn", X, left) + float(law.noise) ** 0.5 * rng.standard_normal((prompts, n))
    for layer in layers:
        A = np.array([[float(e) for e in row] for row in _layer(layer, len(sigma)).tolist()])
        move = np.einsum("bnd,bn->bd", X, r) @ A / n
        left, r = left - move, r - np.einsum("bnd,bd->bn", X, move)
    squares = np.einsum("bd,bd->b", left, query) ** 2
    return float(squares.mean()), float(squares.std() / prompts**0.5)
