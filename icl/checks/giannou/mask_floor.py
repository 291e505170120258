"""Linear attention without a mask, as giannou has it: a floor under the loss that no depth gets below.

The query token (x_q, 0) attends to itself. With S' = (sum_i x_i x_i^T + x_q x_q^T) / n and layers A_l =
-a_l I, B_l = (beta_l / a_l) I in the notation of eq. (11), every layer is a function of S', and c times the
read-out leaves the error w^T e, e = x_q - c [x_q - r(S') x_q - x_q (x_q^T S'^{-1} (I - r(S')) x_q) / n],
r(s) = prod_l (1 - a_l s p_l^2), p_{l+1} = p_l (1 - beta_l s p_l^2), p_1 = 1.

In the eigenvectors of S', with g = c (1 - r) at the eigenvalues lambda_i and v the query's row of the right
singular vectors, x_i = sqrt(n lambda_i) v_i and e_i = x_i (1 - g_i + sum_j g_j v_j^2). For N(0, I) the
v_i^2 are the first D of a Dirichlet(1/2, .., 1/2) of n + 1, independent of the spectrum: the risk given a
spectrum is a quadratic form in g, exactly. With a mask S' is the context's own S, and e_i = x_i (1 - g_i).

B spectra, D covariates, N = n context, L layers, K basis functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.rounding import ROUNDING
from icl.checks.settings import limited
from icl.checks.verdict import CONFIDENCE, QUANTILE, Bound, Control, Finding, at_most, decide, deciding
from icl.errors import InputError, whole
from icl.models.columns import ColumnStack, Head, Layer, Rows
from icl.random import generator

DEGREE = 12  # of the polynomials in log lambda that stand for any function of an eigenvalue
SEARCHED = 2000  # spectra on which step sizes are searched; risks are of all
REMARKS = [
    "Section 6 puts it down to training that LSA does not improve beyond four layers. Without a mask part "
    "of it is structural: the query's own token enters every sum, and no function of S' that layers can "
    "build, of whatever degree, undoes that. With the mask of the other papers there is no floor. The "
    "argument is for the family A_l, B_l ~ I, whose updates of y read x alone; clipping and LayerNorm are "
    "outside it.",
]


class MaskFloor:
    """Settings: sizes, most layers, number of spectra (`samples`), seed. x and w are N(0, I), no noise."""

    reference = "Section 6, linear regression; eq. (3.1a), which has no mask"
    claim = (
        "Without a mask no depth of linear attention with A_l, B_l ~ I gets below a floor in the loss; "
        "with a mask it does."
    )

    def __init__(
        self, dim: int = 5, context: int = 25, layers: int = 4, seed: int = 0, samples: int = 10_000
    ) -> None:
        self.dim = limited("check.dim", dim, 1, 50, "the search over step sizes takes minutes")
        self.context = limited("check.context", context, 1, 5000, "drawing the contexts takes minutes")
        if context <= dim:
            raise InputError(
                f"check.context={context}: must be above check.dim={dim}, so that S is invertible"
            )
        self.layers = limited("check.layers", layers, 1, 6, "the search over step sizes takes minutes")
        self.seed = whole("check.seed", seed, 0)
        self.samples = limited("check.samples", samples, 200, 10**6 // dim, "the spectra take a gigabyte")

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        own_BD = spectra(rng, self.samples, self.context + 1, self.dim) * (self.context + 1) / self.context
        fresh_BD = spectra(rng, self.samples, self.context + 1, self.dim) * (self.context + 1) / self.context
        masked_BD = spectra(rng, self.samples, self.context, self.dim)
        floor_B = self._floor_given_function(own_BD, fresh_BD)
        least_B = least_by_spectrum(fresh_BD, self.context)
        floor, least = float(floor_B.mean()), float(least_B.mean())
        error = float(least_B.std() / len(least_B) ** 0.5)
        unmasked = self._by_layers(fresh_BD, lambda g, s: unmasked_risk(g, s, self.context))
        masked = self._by_layers(masked_BD, lambda g, s: (1 - g).square().mean(-1))
        lowest = float(np.min([risk for risk, _ in unmasked]))
        deepest, deepest_error = masked[-1]
        bound = Bound(
            least - QUANTILE * error,
            "least risk of any function of the whole spectrum, a lower bound for any depth; lower end of its "
            f"{CONFIDENCE:.1%} interval",
            "unmasked_lowest",
            ">",
        )
        token_error = self._token_error()
        verdict, shown = deciding(
            [
                (decide(-lowest, -bound.value), bound),
                (
                    decide(-bound.value, 0.0),
                    Bound(0.0, "a floor is above 0", "floor_lower", ">"),
                ),
                at_most("token_error", token_error, ROUNDING * 64, "rounding: 64 * 64 * 2^-52"),
            ]
        )
        return Finding(
            verdict,
            {
                "floor": floor,
                "floor_stderr": float(floor_B.std() / len(floor_B) ** 0.5),
                "floor_lower": bound.value,
                "unmasked_lowest": lowest,
                "unmasked_lowest_stderr": min(unmasked)[1],
                "unmasked_by_layers": [risk for risk, _ in unmasked],
                "unmasked_by_layers_stderr": [stderr for _, stderr in unmasked],
                "masked_by_layers": [risk for risk, _ in masked],
                "masked_by_layers_stderr": [stderr for _, stderr in masked],
                "token_error": token_error,
            },
            shown,
            Control(
                "the masked family's loss at the most layers: below the floor",
                deepest,
                deepest + QUANTILE * deepest_error < bound.value,
            ),
            notes=[
                "Losses are divided by d, Sigma = I. floor: the best function of an eigenvalue, fitted on "
                "other spectra; floor_lower: any function of the whole spectrum. The query's own part is "
                "integrated exactly.",
                "masked_by_layers, unmasked_by_layers: best step sizes found, so upper bounds of each "
                "depth's optimum.",
            ],
            remarks=REMARKS,
            kinds={"*": "sampled", "token_error": "tried"},
        )

    def _floor_given_function(self, fitted_BD: Tensor, fresh_BD: Tensor) -> Tensor:
        """Risk on fresh spectra of the best function of an eigenvalue on others."""
        basis_BDK, fresh_BDK = _basis(fitted_BD, fitted_BD), _basis(fresh_BD, fitted_BD)
        form_BDD, linear_BD, _ = quadratic_form(fitted_BD, self.context)
        M_KK = torch.einsum("bik,bij,bjl->kl", basis_BDK, form_BDD, basis_BDK) / len(fitted_BD)
        m_K = torch.einsum("bik,bi->k", basis_BDK, linear_BD) / len(fitted_BD)
        theta_K = torch.linalg.lstsq(M_KK, m_K[:, None], driver="gelsd").solution[:, 0]
        return unmasked_risk(fresh_BDK @ theta_K, fresh_BD, self.context)

    def _by_layers(
        self, spectra_BD: Tensor, risk: Callable[[Tensor, Tensor], Tensor]
    ) -> list[tuple[float, float]]:
        """(risk, standard error) at the best step sizes found for 1 to L layers, each from the last."""
        found: list[tuple[float, float]] = []
        few_BD, theta = spectra_BD[:SEARCHED], np.zeros(0)
        for layers in range(1, self.layers + 1):
            starts = [_one_more(theta, layers, beta) for beta in (0.1, 0.6, 1.2)]
            results = [_minimised(start, few_BD, layers, risk) for start in starts]
            theta = min(results, key=lambda result: result[0])[1]
            risk_B = risk(response(torch.from_numpy(theta), spectra_BD, layers), spectra_BD)
            found.append((float(risk_B.mean()), float(risk_B.std() / len(risk_B) ** 0.5)))
        return found

    def _token_error(self) -> float:
        """The formula for e against the transformer itself, token by token and without a mask."""
        rng = generator(self.seed, "control")
        layers, n, D = 3, self.context, self.dim
        theta = torch.from_numpy(rng.uniform(0.1, 0.4, 2 * layers))
        X_DM, w_D = (
            torch.from_numpy(rng.standard_normal((D, n + 1))),
            torch.from_numpy(rng.standard_normal(D)),
        )
        stack = unmasked_stack(theta[:layers], theta[layers : 2 * layers - 1], D, n)
        y_M = w_D @ X_DM
        y_M[-1] = 0
        out = stack(stack.fill({"x": X_DM, "y": y_M[None]}, n + 1))
        got = -theta[-1] * stack.block(out, "y")[0, -1]
        lambda_D, U_DD = torch.linalg.eigh(X_DM @ X_DM.mT / n)
        g_D, x_D = response(theta, lambda_D, layers), U_DD.mT @ X_DM[:, -1]
        e_D = x_D * (1 - g_D + (g_D * x_D**2 / lambda_D).sum() / n)
        expected = (U_DD.mT @ w_D) @ (x_D - e_D)
        return float((got - expected).abs() / (w_D.norm() * x_D.norm()))


def spectra(rng: np.random.Generator, samples: int, tokens: int, dim: int) -> Tensor:
    """Eigenvalues of (1/tokens) sum x x^T, x ~ N(0, I), by Bartlett's triangle."""
    L_BDD = np.tril(rng.standard_normal((samples, dim, dim)), -1)
    degrees_D = tokens - np.arange(dim)
    L_BDD[:, np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(degrees_D, (samples, dim)))
    return torch.from_numpy(np.linalg.svd(L_BDD, compute_uv=False) ** 2 / tokens)


def unmasked_risk(g_BD: Tensor, lambda_BD: Tensor, context: int) -> Tensor:
    """E |e|^2 / D given the spectrum of S'.

    For v^2 ~ Dirichlet(1/2, ..) of m = n + 1 and T = sum_j g_j v_j^2, E v_i^2 = 1/m, E v_i^2 T = (G + 2
    g_i) / (m (m+2)), E v_i^2 T^2 = (8 g_i^2 + 4 g_i G + 2 Q + G^2) / (m (m+2) (m+4)), G = sum g, Q = sum
    g^2.
    """
    m = context + 1
    G_B1, Q_B1 = g_BD.sum(-1, keepdim=True), g_BD.square().sum(-1, keepdim=True)
    first_BD = (1 - g_BD).square() / m + 2 * (1 - g_BD) * (G_B1 + 2 * g_BD) / (m * (m + 2))
    second_BD = (8 * g_BD.square() + 4 * g_BD * G_B1 + 2 * Q_B1 + G_B1.square()) / (m * (m + 2) * (m + 4))
    return context * (lambda_BD * (first_BD + second_BD)).mean(-1)


def quadratic_form(lambda_BD: Tensor, context: int) -> tuple[Tensor, Tensor, Tensor]:
    """(F, f, c) with unmasked_risk = g^T F g - 2 f^T g + c, g the values at the eigenvalues."""
    m, D = context + 1, lambda_BD.shape[-1]
    sum_B1 = lambda_BD.sum(-1, keepdim=True)
    m2, m3 = m * (m + 2), m * (m + 2) * (m + 4)
    pairs_BDD = lambda_BD[:, :, None] + lambda_BD[:, None]
    ones_DD = torch.ones(D, D, dtype=torch.float64)
    diagonal_BD = lambda_BD * (1 / m - 4 / m2 + 8 / m3) + 2 * sum_B1 / m3
    F_BDD = (
        torch.diag_embed(diagonal_BD) - pairs_BDD / m2 + 2 * pairs_BDD / m3 + sum_B1[..., None] * ones_DD / m3
    )
    f_BD = lambda_BD * (1 / m - 2 / m2) - sum_B1 / m2
    scale = context / D
    return scale * F_BDD, scale * f_BD, scale * sum_B1[:, 0] / m


def least_by_spectrum(lambda_BD: Tensor, context: int) -> Tensor:
    """Least risk for each spectrum if g may depend on all of it: what no layers can beat."""
    F_BDD, f_BD, c_B = quadratic_form(lambda_BD, context)
    best_BD = torch.linalg.solve(F_BDD, f_BD[..., None])[..., 0]
    return c_B - (f_BD * best_BD).sum(-1)


def response(theta: Tensor, lambda_BD: Tensor, layers: int) -> Tensor:
    """g = c (1 - r) for theta = (a_1 .. a_L, beta_1 .. beta_{L-1}, c)."""
    p_BD, r_BD = torch.ones_like(lambda_BD), torch.ones_like(lambda_BD)
    for layer in range(layers):
        r_BD = r_BD * (1 - theta[layer] * lambda_BD * p_BD.square())
        if layer + 1 < layers:
            p_BD = p_BD * (1 - theta[layers + layer] * lambda_BD * p_BD.square())
    return theta[-1] * (1 - r_BD)


def unmasked_stack(a_L: Tensor, beta_L: Tensor, dim: int, context: int) -> ColumnStack:
    """The same as a transformer of (3.1a), the 1/n within its values."""
    rows, layers = Rows({"x": dim, "y": 1}), []
    for layer, a in enumerate(a_L.tolist()):
        moves = {"y": {"y": -a / context}}
        if layer < len(beta_L):
            moves["x"] = {"x": -float(beta_L[layer]) / context}
        layers.append(Layer([Head.of(rows, moves, key={"x": 1.0}, query={"x": 1.0})]))
    return ColumnStack(rows, layers)


def _basis(lambda_BD: Tensor, scaled_to_BD: Tensor) -> Tensor:
    """Chebyshev polynomials in log lambda, mapped to [-1, 1] by the range of the spectra fitted."""
    low, high = float(scaled_to_BD.min().log()), float(scaled_to_BD.max().log())
    t_BD = (2 * (lambda_BD.log() - low) / (high - low) - 1).clamp(-1, 1)
    return torch.stack([torch.cos(k * torch.arccos(t_BD)) for k in range(DEGREE + 1)], -1)


def _one_more(theta: np.ndarray, layers: int, beta: float) -> np.ndarray:
    """A start: the step sizes of one layer less, and one more of about the same size."""
    if layers == 1:
        return np.array([beta, 1.0])
    a, betas, c = theta[: layers - 1], theta[layers - 1 : -1], theta[-1:]
    return np.concatenate([a, a[-1:], betas, [beta * abs(a[-1])], c])


def _minimised(
    start: np.ndarray, spectra_BD: Tensor, layers: int, risk: Callable[[Tensor, Tensor], Tensor]
) -> tuple[float, np.ndarray]:
    def value_and_gradient(values: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(values, requires_grad=True)
        loss = risk(response(theta, spectra_BD, layers), spectra_BD).mean()
        (gradient,) = torch.autograd.grad(loss, theta)
        return float(loss.detach()), gradient.numpy()

    with np.errstate(all="ignore"):
        result = minimize(value_and_gradient, start, jac=True, method="BFGS", options={"maxiter": 200})
    return (float(result.fun) if np.isfinite(result.fun) else np.inf), result.x
