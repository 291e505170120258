"""Theorem 4.2 and Remark 4.4: linear regression and ridge by T steps of Newton's iteration, in 3 + T layers.

Rows X, R, I, A of D each and t (the query), y, out of one: 4D + 3. M = N columns, N >= D. From [I; I; I; A^T;
a_test^T; y^T; 0] to out[0] = y^T A X_T a_test, with R = A^T A + mu I and X_0 = epsilon R.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.constructions.giannou.inversion import one_layer
from icl.constructions.giannou.prompt import prompt, shape_of
from icl.errors import real, whole
from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows


def theorem4_2(dim: int, steps: int, epsilon: float, mu: float = 0.0) -> ColumnStack:
    """Return the 3 + T layers; mu > 0 is Remark 4.4, at no further layer, head or row."""
    whole("construction.dim", dim, 1)
    whole("construction.steps", steps, 0)
    real("construction.epsilon", epsilon, 0, open_low=True)
    real("construction.mu", mu, 0)
    rows = Rows({"X": dim, "R": dim, "I": dim, "A": dim, "t": 1, "y": 1, "out": 1})
    identity = {"I": 1.0}
    gram = Head.of(rows, {"X": {"A": epsilon}, "R": {"A": 1.0}}, key={"A": 1.0}, query=identity)
    # X and R hold the identity: taken away, and with it mu I brought in.
    ridge = {"X": {"I": epsilon * mu - 1}, "R": {"I": mu - 1}}
    cleared = Head.of(rows, ridge, key=identity, query=identity)
    weights = Head.of(rows, {"out": {"y": 1.0}}, key={"A": 1.0}, query={"X": 1.0})
    answer = Head.of(rows, {"out": {"out": 1.0}}, key={"t": 1.0}, query={"I[0]": 1.0})
    residual = Head.of(rows, {"out": {"out": -1.0}}, key=identity, query=identity)
    gram_text = "A^T A + mu I" if mu else "A^T A"
    return ColumnStack(
        rows,
        [
            Layer([gram, cleared], purpose=f"R <- {gram_text}, X <- epsilon R"),
            *[one_layer(rows, "R")] * steps,
            Layer([weights], purpose="out <- y^T A X"),
            Layer([answer, residual], purpose="out[0] <- y^T A X a_test"),
        ],
    )


def start(A_ND: Tensor, mu: float = 0.0, share: float = 0.5) -> float:
    """epsilon = share * 2 / lambda_max(R)^2, R = A^T A + mu I; any share in (0, 1) converges."""
    shape_of(A_ND)
    largest = float(torch.linalg.svdvals(A_ND)[0]) ** 2 + mu
    return share * 2 / largest**2


def prompt_of_theorem(stack: ColumnStack, A_ND: Tensor, y_N: Tensor, test_D: Tensor) -> Tensor:
    """[I; I; I; A^T; a_test^T; y^T; 0], the query along the first D columns of its row."""
    return prompt(stack, A_ND, y_N, t=test_D[..., None, :])
