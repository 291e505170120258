"""Theorem 5.2: steps of damped Newton's method on the regularised logistic loss, as appendix C has them.

Rows of (C.2): X, R, I, Z, A, x of D each and y, e, s, one of one: 6 D + 4. M = N columns, N >= D. Columns of
A are the a_i, e is e_1^T / N, x holds the iterate in every column, s is scratch. X, R and Z serve the
inversion: with R = B, the Hessian, X goes to its inverse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.constructions.giannou import piecewise
from icl.constructions.giannou.inversion import two_layers
from icl.constructions.giannou.piecewise import Neurons, Piecewise
from icl.constructions.giannou.prompt import prompt, shape_of
from icl.errors import InputError, real, whole
from icl.models.giannou.columns import Blocks, ColumnStack, Head, Layer, Rows

IDENTITY: Blocks = {"I": 1.0}
FIRST: Blocks = {"I[0]": 1.0}  # e_1^T, the first row of the identity


def radius_of_iterates(mu: float, start: float = 0.0) -> float:
    """|x_t| <= this for exact damped steps from |x_0| <= start.

    They never raise f, and mu/2 |x|^2 <= f(x_0) <= log(1 + exp(start)) + mu/2 start^2.
    """
    return math.sqrt(2 * float(np.logaddexp(0.0, start)) / mu + start**2)


@dataclass(frozen=True)
class Approximations:
    """The four functions that ReLU layers stand in for, and what inversion starts from."""

    variance: Piecewise  # p (1 - p)
    square: Piecewise  # behind products d_i a_ij
    probability: Piecewise  # p
    step_size: Piecewise
    alpha: float  # X_0 = alpha B^T
    radius: float

    def product_error(self, context: int) -> float:
        """Of (d_i / n) a_ij: each square errs by at most its own error, both on the same side."""
        return self.square.error / (4 * 4 * context)


def approximations(mu: float, width: int, radius: float) -> Approximations:
    """With `width` neurons for each function (for each entry of a_i where it is the product).

    radius bounds |<x, a_i>| <= |x|; lambda^2 <= (1 + mu |x|)^2 / mu. The Hessian's spectrum is within
    [mu, mu + 1/4], for which 2 / (low^2 + high^2) is the best multiple of B^T to start from.
    """
    real("construction.mu", mu, 0, open_low=True)
    whole("construction.width", width, 16)
    low, high = mu, mu + 0.25
    return Approximations(
        piecewise.variance_of_label(width - 2, radius),
        piecewise.half_square(width // 2 - 1),
        piecewise.probability(width // 2 - 1, radius),
        piecewise.step_size(width - 2, mu, (1 + mu * radius) ** 2 / mu),
        2 / (low**2 + high**2),
        radius,
    )


def rows_of_theorem(dim: int) -> Rows:
    whole("construction.dim", dim, 1)
    of_dim = dict.fromkeys(["X", "R", "I", "Z", "A"], dim)
    return Rows({**of_dim, "y": 1, "x": dim, "e": 1, "s": 1, "one": 1})


def newton_step(dim: int, context: int, mu: float, inversion: int, by: Approximations) -> ColumnStack:
    """One damped Newton step in 11 + 2 k layers, k = `inversion` steps of Newton's iteration."""
    if whole("construction.context", context, 1) < dim:
        raise InputError(f"construction.context={context}: must be at least dim={dim}, [I 0] is d x n")
    whole("construction.inversion", inversion, 0)
    rows = rows_of_theorem(dim)
    inverse = two_layers(rows, "R") * inversion
    if inversion:
        inverse[-1] = two_layers(rows, "R", restored=True)[-1]
    return ColumnStack(
        rows,
        [
            *_hessian(rows, dim, context, mu, by),
            *inverse,
            *_gradient(rows, mu, by),
            *_damping(rows, by),
            *_update(rows),
        ],
    )


def newton_steps(
    dim: int, context: int, mu: float, inversion: int, by: Approximations, steps: int
) -> ColumnStack:
    """Return the same layers over and over: the rows end as they began, but for x."""
    step = newton_step(dim, context, mu, inversion, by)
    return ColumnStack(step.rows, [*step.layers] * whole("construction.steps", steps, 1))


def prompt_of_theorem(stack: ColumnStack, A_ND: Tensor, y_N: Tensor, x_D: Tensor) -> Tensor:
    """(C.2): [I; I; I; 0; A^T; y^T; x 1^T; e_1^T / n; 0; 1^T]."""
    N, _ = shape_of(A_ND)
    one, first = torch.ones(1, N, dtype=torch.float64), torch.full((1, 1), 1 / N, dtype=torch.float64)
    return prompt(stack, A_ND, y_N, x=x_D[..., None].expand(*x_D.shape, N), e=first, one=one)


def _hessian(rows: Rows, dim: int, context: int, mu: float, by: Approximations) -> list[Layer]:
    """Write steps 1 to 3: R <- B = A^T D A / n + mu I and X <- alpha B^T, up to the ReLU layers' errors."""
    variance, products = Neurons(rows), Neurons(rows)
    variance.function(by.variance, {"s": 1.0}, "s")
    variance.clear("s")
    for j in range(dim):
        products.product(by.square, "s", 4.0 * context, f"A[{j}]", f"X[{j}]")
        products.clear(f"X[{j}]")
    products.clear("s")
    alpha = by.alpha
    curvature = Head.of(rows, {"X": {"A": alpha}, "R": {"A": 1.0}}, key={"X": 1.0}, query=IDENTITY)
    ridge = Head.of(rows, {"X": {"I": alpha * mu}, "R": {"I": mu - 1}}, key=IDENTITY, query=IDENTITY)
    used = Head.of(rows, {"X": IDENTITY}, key=IDENTITY, query={"X": -1.0})
    transposed = Head.of(rows, {"X": IDENTITY}, key={"X": 1.0}, query=IDENTITY)
    return [
        Layer([_scores(rows)], variance.layer(), "step 1: s <- x^T a_i, then p_i (1 - p_i)"),
        Layer(_divided(rows), products.layer(), "step 2: s <- s / n, then X <- s_i a_i and s <- 0"),
        Layer([curvature, ridge, used], purpose="step 3: R <- B = A^T D A / n + mu I, X <- alpha B"),
        Layer([transposed, _cleared(rows, "X")], purpose="step 3: X <- alpha B^T"),
    ]


def _gradient(rows: Rows, mu: float, by: Approximations) -> list[Layer]:
    """Write steps 5 to 7: the gradient b in the first column of R."""
    probabilities, signed = Neurons(rows), Neurons(rows)
    for sign in (1.0, -1.0):
        probabilities.function(by.probability, {"s": sign}, "s", gate=("y", sign))
    probabilities.clear("s")
    # y s for y = +-1 and |s| < 4: (s/2 + 2 y)+ - (-s/2 + 2 y)+ and (-s/2 - 2 y)+ - (s/2 - 2 y)+.
    half, two = np.array([0.5, -0.5, -0.5, 0.5]), np.array([2.0, 2.0, -2.0, -2.0])
    signed.add({"s": half, "y": two}, {"s": np.array([1.0, -1.0, 1.0, -1.0])})
    signed.clear("s")
    data = Head.of(rows, {"R": {"A": -1.0}}, key={"s": 1.0}, query=FIRST)
    penalty = Head.of(rows, {"R": {"x": 1.0}}, key=FIRST, query={"I[0]": mu})
    return [
        Layer([_scores(rows)], probabilities.layer(), "step 5: s <- x^T a_i, then p_i"),
        Layer(_divided(rows), signed.layer(), "step 6: s <- s / n, then y_i p_i / n"),
        Layer([data, _cleared(rows, "R"), penalty], purpose="step 7: R <- [b 0], b the gradient"),
    ]


def _damping(rows: Rows, by: Approximations) -> list[Layer]:
    """Step 8: X <- [B^{-1} b 0] and the step size in s[0]."""
    direction = Head.of(rows, {"X": {"X": 1.0}}, key=IDENTITY, query={"R": 1.0})
    decrement = Head.of(rows, {"s": FIRST}, key={"R": 1.0}, query={"X": 1.0})
    emptied = Head.of(rows, {"s": {"I[0]": -1.0}}, key=FIRST, query={"s": 1.0})
    damping = Neurons(rows)
    damping.function(by.step_size, {"s": 1.0}, "s")
    damping.clear("s")
    return [
        Layer([direction, _cleared(rows, "X")], purpose="step 8: X <- [X b 0]"),
        Layer([decrement, emptied], damping.layer(), "step 8: s[0] <- lambda^2, then the step size"),
    ]


def _update(rows: Rows) -> list[Layer]:
    """Step 9: x moves in every column; X, R and s as they were at the start."""
    scaled = Head.of(rows, {"s": {"s": 1.0}}, key={"X": 1.0}, query=IDENTITY)
    moved = Head.of(rows, {"x": {"I": -1.0}}, key={"s": 1.0}, query={"one": 1.0})
    restored = Head.of(
        rows, {"X": {"I": 1.0, "X": -1.0}, "R": {"I": 1.0, "R": -1.0}}, key=IDENTITY, query=IDENTITY
    )
    emptied = Neurons(rows)
    emptied.clear("s")
    return [
        Layer([scaled, _cleared(rows, "s")], purpose="step 9: s <- [step size (B^{-1} b)^T, ..]"),
        Layer([moved, restored], emptied.layer(), "step 9: x <- x - step size B^{-1} b; X, R <- I, s <- 0"),
    ]


def _scores(rows: Rows) -> Head:
    """s += x^T A^T."""
    return Head.of(rows, {"s": FIRST}, key={"x": 1.0}, query={"A": 1.0})


def _divided(rows: Rows) -> list[Head]:
    """s <- s / n in every column."""
    return [
        Head.of(rows, {"s": FIRST}, key={"e": 1.0}, query={"s": 1.0}),
        Head.of(rows, {"s": {"I[0]": -1.0}}, key=FIRST, query={"s": 1.0}),
    ]


def _cleared(rows: Rows, block: str) -> Head:
    """Set the block's first D columns to 0."""
    return Head.of(rows, {block: {block: -1.0}}, key=IDENTITY, query=IDENTITY)
