"""Pretraining of reduced linear attention: ridge regression over prompts that are drawn without their tokens.

Given a task w, the examples enter by sum_i y_i^2, which is s chi^2_l with s = |w|^2/d + rho, and by
sum_i y_i x_i, which given the labels is Gaussian; so a prompt of any length costs d numbers.

K tasks, N prompts, D covariates, H = D + 1 features, S pairs of covariates, U pairs of features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from icl.models.lu.finite import FiniteRisk, TaskMoments
from icl.theory.blurred import Undecided

Array = NDArray[np.float64]
BLOCK = 512  # prompts whose products of pairs are held at a time
WORTH = 75  # weights over the steps of conjugate gradients, about, from which these cost less
PRECISION = 1e-8  # of the residual where they end
LEAST_NOISE = 1e-5  # of one task without a ridge: w^T h = d times the last feature, but for noise
DEPENDENT = "without a ridge the features of one task are dependent, or nearly: take more noise (check.rho)"
DRAWS, LAWS = ("drawn", "balanced"), ("sphere", "gaussian")


class Prompts(NamedTuple):
    """The query x, the features h and the query's label y of N prompts: the model predicts x^T Gamma h."""

    x_ND: Array
    h_NH: Array
    y_N: Array


@dataclass(frozen=True)
class Pretraining:
    """`prompts` n of `examples` l each, of `tasks` k (None: a new task in every prompt), with `ridge` lambda:
    (sum H H^T + (n/d) lambda I) Gamma = sum H y; at 0 the Gamma of least norm. `draw`: every prompt's task is
    drawn, or each task has equally many prompts, up to one."""

    dim: int
    examples: int
    tasks: int | None
    prompts: int
    rho: float
    ridge: float = 0.0
    law: str = "sphere"
    draw: str = "drawn"

    @classmethod
    def at(
        cls, dim: int, alpha: float, kappa: float, tau: float, rho: float, ridge: float = 0.0, **how: str
    ) -> Self:
        """Return the sizes nearest to l = alpha d, k = kappa d, n = tau d^2."""
        tasks = None if np.isinf(kappa) else max(1, round(kappa * dim))
        return cls(dim, max(1, round(alpha * dim)), tasks, max(1, round(tau * dim**2)), rho, ridge, **how)

    @property
    def ratios(self) -> tuple[float, float, float, float]:
        """Return l / d, k / d, n / d^2 and rho, at these whole numbers."""
        tasks = np.inf if self.tasks is None else self.tasks / self.dim
        return self.examples / self.dim, tasks, self.prompts / self.dim**2, self.rho

    def errors(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw tasks and prompts, pretrain, and return the exact (e_ICL, e_IDG) of the weights."""
        return self.errors_by_ridge(rng, [self.ridge])[0]

    def errors_by_ridge(self, rng: np.random.Generator, ridges: Sequence[float]) -> list[tuple[float, float]]:
        """Return the same for each ridge, on the same tasks and prompts."""
        Gammas, w_KD = self.fit(rng, ridges)
        of_new = TaskMoments.new(self.dim, self.rho, self.law)
        of_old = of_new if w_KD is None else TaskMoments.of(w_KD, self.rho)
        new, old = (FiniteRisk(tasks, self.examples) for tasks in (of_new, of_old))
        return [(new.risk(Gamma_DH), old.risk(Gamma_DH)) for Gamma_DH in Gammas]

    def fit(self, rng: np.random.Generator, ridges: Sequence[float]) -> tuple[list[Array], Array | None]:
        """Return Gamma by ridge, and the pretraining tasks."""
        if self.tasks == 1 and self.rho < LEAST_NOISE and 0 in ridges:
            raise Undecided(DEPENDENT)
        w_KD = None if self.tasks is None else self.draw_tasks(rng, self.tasks)
        features = self.dim * (self.dim + 1)
        blocks = self._blocks(rng, w_KD)
        far = 1 - np.sqrt(features / max(features, self.prompts))  # one over the steps, up to a factor
        solve = few_prompts if far == 0 else by_steps if features * far >= WORTH else many_prompts
        return solve(blocks, self.dim, [self.prompts * ridge / self.dim for ridge in ridges]), w_KD

    def draw_tasks(self, rng: np.random.Generator, count: int) -> Array:
        w_KD = rng.standard_normal((count, self.dim))
        if self.law == "sphere":
            w_KD *= np.sqrt(self.dim) / np.linalg.norm(w_KD, axis=1, keepdims=True)
        return w_KD

    def draw_prompts(self, rng: np.random.Generator, w_ND: Array) -> Prompts:
        """Draw a prompt of each of the tasks."""
        N, D = w_ND.shape
        square_N1 = np.square(w_ND).sum(1, keepdims=True) / D
        s_N1 = square_N1 + self.rho
        labels_N1 = s_N1 * rng.chisquare(self.examples, (N, 1))
        z_ND = rng.standard_normal((N, D))
        along_N1 = (z_ND * w_ND).sum(1, keepdims=True) / (D * square_N1)
        z_ND -= (1 - np.sqrt(self.rho / s_N1)) * along_N1 * w_ND
        sum_ND = labels_N1 * w_ND / (D * s_N1) + np.sqrt(labels_N1 / D) * z_ND
        h_NH = np.hstack([D * sum_ND, labels_N1]) / self.examples
        x_ND = rng.standard_normal((N, D)) / np.sqrt(D)
        return Prompts(x_ND, h_NH, (x_ND * w_ND).sum(1) + np.sqrt(self.rho) * rng.standard_normal(N))

    def _blocks(self, rng: np.random.Generator, w_KD: Array | None) -> Iterator[Prompts]:
        for start in range(0, self.prompts, BLOCK):
            count = min(BLOCK, self.prompts - start)
            if w_KD is None:
                w_ND = self.draw_tasks(rng, count)
            elif self.draw == "balanced":
                w_ND = w_KD[np.arange(start, start + count) % len(w_KD)]
            else:
                w_ND = w_KD[rng.integers(len(w_KD), size=count)]
            yield self.draw_prompts(rng, w_ND)


def few_prompts(blocks: Iterator[Prompts], dim: int, shifts: Sequence[float]) -> list[Array]:
    """Return Gamma, for each addition to the diagonal, from the n x n matrix of the prompts' inner products,
    those of x times those of h."""
    x_ND, h_NH, y_N = _joined(blocks)
    gram_NN = x_ND @ x_ND.T
    gram_NN *= h_NH @ h_NH.T
    return [(x_ND * c_N[:, None]).T @ h_NH for c_N in _solutions(gram_NN, y_N, shifts)]


def many_prompts(blocks: Iterator[Prompts], dim: int, shifts: Sequence[float]) -> list[Array]:
    """Return the same from the normal matrix, summed over blocks. Its entry x_a x_b h_i h_j takes a pair
    a <= b and a pair i <= j: a quarter of the products, and no array of all prompts."""
    size = dim + 1
    (a_S, b_S), (i_U, j_U) = np.triu_indices(dim), np.triu_indices(size)
    sums_SU, right_DH = np.zeros((len(a_S), len(i_U))), np.zeros((dim, size))
    for x_ND, h_NH, y_N in blocks:
        sums_SU += (x_ND[:, a_S] * x_ND[:, b_S]).T @ (h_NH[:, i_U] * h_NH[:, j_U])
        right_DH += (x_ND * y_N[:, None]).T @ h_NH
    pair_HH = np.zeros((size, size), dtype=int)
    pair_HH[i_U, j_U] = pair_HH[j_U, i_U] = np.arange(len(i_U))
    normal_PP = np.zeros((dim * size, dim * size), order="F")
    for row_U, a, b in zip(sums_SU, a_S, b_S, strict=True):
        normal_PP[b * size : (b + 1) * size, a * size : (a + 1) * size] = row_U[pair_HH]
    right_P = right_DH.ravel()
    return [Gamma.reshape(dim, size) for Gamma in _solutions(normal_PP, right_P, shifts)]


def _solutions(matrix_PP: Array, right_P: Array, shifts: Sequence[float]) -> Iterator[Array]:
    """Yield the solutions; of the matrix, which is written over, the lower triangle is read."""
    for before, shift in pairwise([0.0, *shifts]):
        matrix_PP[np.diag_indices_from(matrix_PP)] += shift - before
        try:
            factor = cho_factor(matrix_PP, lower=True, overwrite_a=shift == shifts[-1], check_finite=False)
        except LinAlgError:
            raise Undecided(DEPENDENT) from None
        yield np.asarray(cho_solve(factor, right_P))


def by_steps(blocks: Iterator[Prompts], dim: int, shifts: Sequence[float]) -> list[Array]:
    """Return the same by conjugate gradients: a step costs n d^2, where the normal matrix costs n d^4. Its
    mean over the queries, I (x) sum h h^T / d, is the preconditioner; what is left has a condition that d
    does not enter, only the ratio of prompts to weights."""
    x_ND, h_NH, y_N = _joined(blocks)
    shape, size, mean_HH = (dim, dim + 1), (dim * (dim + 1),) * 2, h_NH.T @ h_NH / dim

    def summed(value_N: Array) -> Array:
        return np.asarray((x_ND * value_N[:, None]).T @ h_NH).ravel()

    def solved(shift: float) -> Array:
        inverse_HH = np.linalg.inv(mean_HH + shift * np.eye(dim + 1))

        def normal(Gamma: Array) -> Array:
            return summed(np.einsum("nh,nh->n", x_ND @ Gamma.reshape(shape), h_NH)) + shift * Gamma

        mean = LinearOperator(size, lambda Gamma: (Gamma.reshape(shape) @ inverse_HH).ravel())
        found, failed = cg(LinearOperator(size, normal), summed(y_N), rtol=PRECISION, M=mean)
        assert not failed, "conjugate gradients did not converge"
        return np.asarray(found).reshape(shape)

    return [solved(shift) for shift in shifts]


def _joined(blocks: Iterator[Prompts]) -> Prompts:
    return Prompts(*(np.concatenate(part) for part in zip(*blocks, strict=True)))
