"""The risk that L layers of linear attention reach with A_l = -a_l I, B_l = (beta_l / a_l) I in the notation
of ahn's eq. (11) and c times the read-out: every layer is then a function of S, and the prediction is w^T
g(S) x with g = c (1 - r), from r = p = 1

    r <- r (1 - a_l s p^2),   p <- p (1 - beta_l s p^2),   the last beta without effect.

Given a prompt the squared error, w ~ N(0, I) integrated out, is a sum of squares of numbers that are linear
in the values of g at the eigenvalues; the optimum over (a, beta, c) is a nonlinear least-squares problem.

B prompts (or nodes of a rule), D covariates, N context; V = 2 L variables a_1 .. a_L, beta_1 .. beta_{L-1}
and c.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Array = NDArray[np.float64]

SHARES = (0.1, 0.2, 0.35)  # of a step that moves y, what a new layer moves x by where a search starts
MAX_EVALUATIONS = 150
# Layers that are searched. The tail of six is that of a polynomial of degree 728: prompts that carry it have
# weights and losses beyond float64.
DEEPEST = 5


def response(theta_V: Array, s_X: Array) -> Array:
    """g at s."""
    return response_and_derivatives(theta_V, s_X)[0]


def response_and_derivatives(theta_V: Array, s_X: Array) -> tuple[Array, Array]:
    """g at s, and its derivatives, the axis of the variables first."""
    layers, c = len(theta_V) // 2, theta_V[-1]
    r_X, p_X = np.ones_like(s_X), np.ones_like(s_X)
    dr_VX, dp_VX = np.zeros((len(theta_V), *s_X.shape)), np.zeros((len(theta_V), *s_X.shape))
    for layer in range(layers):
        step_X, a = s_X * p_X * p_X, theta_V[layer]
        dstep_VX = 2 * s_X * p_X * dp_VX
        dr_VX = dr_VX * (1 - a * step_X) - r_X * a * dstep_VX
        dr_VX[layer] -= r_X * step_X
        r_X = r_X * (1 - a * step_X)
        if layer + 1 < layers:
            beta = theta_V[layers + layer]
            dp_VX = dp_VX * (1 - beta * step_X) - p_X * beta * dstep_VX
            dp_VX[layers + layer] -= p_X * step_X
            p_X = p_X * (1 - beta * step_X)
    dg_VX = -c * dr_VX
    dg_VX[-1] += 1 - r_X
    return c * (1 - r_X), dg_VX


class Problem(Protocol):
    """`s_BD` with the weighted residuals of g there, and what each eigenvalue weighs where g = 0."""

    @property
    def s_BD(self) -> Array: ...

    @property
    def omega_BD(self) -> Array: ...

    def residuals(self, g_BD: Array) -> Array:
        """(B, K), whose squares add up to each prompt's share of the risk."""

    def linear_part(self, dg_VBD: Array) -> Array:
        """Return derivatives of the residuals, (V, B, K)."""


@dataclass(frozen=True, eq=False)
class Masked:
    """The query outside the sums: error e = (I - g(S)) x with E x x^T = Sigma, so that sum_i omega_i (1 -
    g_i)^2 with omega_i = <v_i, Sigma v_i> at S's eigenvectors v_i; noise adds sum_i noise_i g_i^2, noise_i =
    (variance / N) omega_i / s_i. Both already hold the prompt's weight."""

    s_BD: Array
    omega_BD: Array
    noise_BD: Array | None = None

    def residuals(self, g_BD: Array) -> Array:
        error_BD = np.sqrt(self.omega_BD) * (1 - g_BD)
        return error_BD if self.noise_BD is None else np.hstack([error_BD, np.sqrt(self.noise_BD) * g_BD])

    def linear_part(self, dg_VBD: Array) -> Array:
        error_VBD = -np.sqrt(self.omega_BD) * dg_VBD
        if self.noise_BD is None:
            return error_VBD
        return np.concatenate([error_VBD, np.sqrt(self.noise_BD) * dg_VBD], -1)


@dataclass(frozen=True, eq=False)
class Unmasked:
    """The query (x, 0) inside its own sum S' = S + x x^T / N. With x_i in the eigenvectors of S' and v_i^2 =
    x_i^2 / (N s_i), t = sum_j g_j v_j^2: e_i = x_i (1 - g_i + t), and label noise leaves variance times
    sum_j v_j^2 (g_j - t)^2 + t^2 (1 - sum_j v_j^2). `weight_B` holds the 1 / D and the 1 / B."""

    s_BD: Array
    x_BD: Array
    context: int
    weight_B: Array
    label_noise: float = 0.0

    @property
    def omega_BD(self) -> Array:
        return self.weight_B[:, None] * self.x_BD**2

    def residuals(self, g_BD: Array) -> Array:
        return self._affine(g_BD, self.x_BD)

    def linear_part(self, dg_VBD: Array) -> Array:
        return self._affine(dg_VBD, 0.0)

    def _affine(self, g_XBD: Array, x_XBD: Array | float) -> Array:
        square_BD = self.x_BD**2 / (self.context * self.s_BD)
        t_XB1 = (g_XBD * square_BD).sum(-1, keepdims=True)
        parts = [x_XBD + self.x_BD * (t_XB1 - g_XBD)]
        if self.label_noise > 0:
            left_B1 = np.sqrt(np.maximum(1 - square_BD.sum(-1, keepdims=True), 0))
            scale = self.label_noise**0.5
            parts += [scale * np.sqrt(square_BD) * (g_XBD - t_XB1), scale * left_B1 * t_XB1]
        return np.sqrt(self.weight_B)[:, None] * np.concatenate(parts, -1)


def risks(theta_V: Array, problem: Problem) -> Array:
    """Each prompt's share of the risk at these variables, (B,)."""
    return np.square(problem.residuals(response(theta_V, problem.s_BD))).sum(-1)


def best(problem: Problem, before_V: Array | None = None, judge: Problem | None = None) -> Array:
    """Return the best variables found, for one layer or for one more than `before_V` has.

    Levenberg-Marquardt from several starts: local minima that were found, not a proof of no better one.
    Where `problem` is a sample, `judge` is another that chooses among them: what fits few prompts may be
    lost on rare ones. A layer that does nothing is among them, so that the choice never gets worse.
    """
    judge = judge or problem
    found = [_idle(before_V)] if before_V is not None else []
    for start_V in _starts(problem, before_V):
        solution = least_squares(
            _residuals, start_V, _jacobian, method="lm", args=(problem,), x_scale="jac",
            max_nfev=MAX_EVALUATIONS,
        )  # fmt: skip
        found.append(solution.x)
    return min(found, key=lambda theta_V: float(risks(theta_V, judge).sum()))


def best_by_layers(
    layers: Sequence[int],
    problem: Problem,
    judge: Problem | None = None,
    known: Mapping[int, Array] | None = None,
) -> dict[int, Array]:
    """`best` for each number of layers asked for, each from the last, which `known` may have; beyond DEEPEST
    layers do nothing, which bounds the family's least risk from above."""
    found: dict[int, Array] = dict(known or {})
    theta_V = None
    with np.errstate(over="ignore", invalid="ignore"):
        for count in range(1, max(layers) + 1):
            if count in found:
                theta_V = found[count]
            elif theta_V is not None and count > DEEPEST:
                found[count] = theta_V = _idle(theta_V)
            else:
                found[count] = theta_V = best(problem, theta_V, judge)
    return {count: found[count] for count in layers}


def _idle(before_V: Array) -> Array:
    layers = len(before_V) // 2
    a_L, beta_L, c = before_V[:layers], before_V[layers:-1], before_V[-1:]
    return np.concatenate([a_L, [0.0], beta_L, [0.0], c])


def _starts(problem: Problem, before_V: Array | None) -> list[Array]:
    """Add a layer at the end, or in front: the others then meet the eigenvalues that it leaves, of
    another size and a narrower spread."""
    s_BD, mean = problem.s_BD, _mean(problem, problem.s_BD)
    if before_V is None:
        return [np.array([1 / mean, 1.0])]
    layers, found = len(before_V) // 2, []
    a_L, beta_L, c = before_V[:layers], before_V[layers:-1], before_V[-1:]
    for share in SHARES:
        beta = share / mean
        ratio = mean / _mean(problem, s_BD * (1 - beta * s_BD) ** 2)
        found.append(np.concatenate([[1 / mean], ratio * a_L, [beta], ratio * beta_L, c]))
        last = share * a_L[-1]
        p_BD = np.ones_like(s_BD)
        for beta in (*beta_L, last):
            p_BD = p_BD * (1 - beta * s_BD * p_BD**2)
        size = 1 / _mean(problem, s_BD * p_BD**2)
        found.append(np.concatenate([a_L, [size], beta_L, [last], c]))
    return found


def _mean(problem: Problem, values_BD: Array) -> float:
    return float((problem.omega_BD * values_BD).sum() / problem.omega_BD.sum())


def _residuals(theta_V: Array, problem: Problem) -> Array:
    return problem.residuals(response(theta_V, problem.s_BD)).ravel()


def _jacobian(theta_V: Array, problem: Problem) -> Array:
    dg_VBD = response_and_derivatives(theta_V, problem.s_BD)[1]
    return problem.linear_part(dg_VBD).reshape(len(theta_V), -1).T
