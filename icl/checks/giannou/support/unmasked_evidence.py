"""The risk of unmasked attention against its integrals term by term and against the transformer itself."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support import unmasked_attention as attention
from icl.checks.giannou.support.mutants import or_infinite
from icl.checks.numbers import Numbers, tried
from icl.theory.quadratic import EPSILON


def compare_integrals(lambda_BD: Tensor, context: int, rng: np.random.Generator) -> Numbers:
    """Compare the risk with its integrals term by term, and the least risk with the risk where it is least
    and its gradient there, in units of rounding."""
    n, D = context, lambda_BD.shape[1]
    g_BD = torch.from_numpy(rng.uniform(0, 1.5, tuple(lambda_BD.shape)))
    size_B = n / D * lambda_BD.sum(-1)
    by_terms_B = attention.risk_by_terms(g_BD, lambda_BD, n)
    # every term is at most 4 of size / m; D^3 of them are added
    rounding_B = EPSILON * (D + 16) * 64 * size_B / (n + 1)
    form_BDD, linear_BD, _ = attention.quadratic_form(lambda_BD, n)
    best_BD = torch.linalg.solve(form_BDD, linear_BD[..., None])[..., 0].requires_grad_()
    risk_B = attention.unmasked_risk(best_BD, lambda_BD, n)
    (gradient_BD,) = torch.autograd.grad(risk_B.sum(), best_BD)
    largest_B = 1 + best_BD.detach().abs().amax(-1)
    allowed_B = rounding_B * largest_B.square()
    least_off_B = (risk_B.detach() - attention.least_by_spectrum(lambda_BD, n)).abs()
    integrals_off_B = (attention.unmasked_risk(g_BD, lambda_BD, n) - by_terms_B).abs()
    return (
        tried(
            integrals_off=or_infinite(float((integrals_off_B / rounding_B).max())),
            least_off=or_infinite(float((least_off_B / allowed_B).max())),
            gradient_off=or_infinite(float((gradient_BD.norm(dim=-1) / allowed_B).max())),
        )
        .means(
            integrals_off="largest difference of the loss from its integrals term by term, over its rounding "
            "error",
            least_off="largest difference of the least loss of a spectrum computed in two ways, over its "
            "rounding error",
            gradient_off="largest gradient of the loss at its least value, over its rounding error",
        )
        .at_most(1.0, "rounding")
    )


def compare_with_tokens(dim: int, context: int, rng: np.random.Generator) -> Numbers:
    """Compare the formula for e with the transformer itself, token by token and without a mask."""
    layers, n, D = 3, context, dim
    theta = torch.from_numpy(rng.uniform(0.1, 0.4, 2 * layers))
    X_DM, w_D = (
        torch.from_numpy(rng.standard_normal((D, n + 1))),
        torch.from_numpy(rng.standard_normal(D)),
    )
    stack = attention.unmasked_stack(theta[:layers], theta[layers : 2 * layers - 1], D, n)
    y_M = w_D @ X_DM
    y_M[-1] = 0
    out = stack(stack.fill({"x": X_DM, "y": y_M[None]}, n + 1))
    got = -theta[-1] * stack.block(out, "y")[0, -1]
    lambda_D, U_DD = torch.linalg.eigh(X_DM @ X_DM.mT / n)
    g_D, x_D = attention.response(theta, lambda_D, layers), U_DD.mT @ X_DM[:, -1]
    e_D = x_D * (1 - g_D + (g_D * x_D**2 / lambda_D).sum() / n)
    expected = (U_DD.mT @ w_D) @ (x_D - e_D)
    error = float((got - expected).abs() / (w_D.norm() * x_D.norm()))
    # three layers, each of whose updates adds over n + 1 columns and D rows, in shares of |w| |x_q|
    bound = EPSILON * layers * 4 * (n + D + 8)
    return (
        tried(token_error=error)
        .means("difference of the formula for the error from the transformer's own, relative")
        .at_most(bound, "rounding of sums over columns")
    )


def trace_z(lambda_BD: Tensor, context: int, tokens: int) -> float:
    """Return the z of E tr S = D and E tr S^2 = D (1 + (D + 1) / tokens), S the mean of x x^T."""
    s_BD, D = lambda_BD * context / tokens, lambda_BD.shape[1]
    traces = ((s_BD.sum(-1), D), (s_BD.square().sum(-1), D * (1 + (D + 1) / tokens)))
    return max(abs(float(trace_B.mean()) - mean) / attention.stderr(trace_B) for trace_B, mean in traces)
