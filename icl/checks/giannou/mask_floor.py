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

from icl.checks.giannou.support.mutants import or_infinite
from icl.checks.settings import in_range
from icl.checks.verdict import Bound, Control, Finding, at_most, combine, decide
from icl.errors import InputError, whole
from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows
from icl.random import generator
from icl.theory.quadratic import EPSILON

DEGREE = 12  # of the polynomials in log lambda that stand for any function of an eigenvalue
MOST_LAYERS = 6  # of the masked stack, too, which must come below the floor
SIGMAS = 3.2905  # of a two-sided 99.9 % interval
SIGMAS_OF_SIX = 3.7653  # the same shared among six
INTEGRATED = 50  # spectra whose integrals are taken term by term
SEARCHED = 2000  # spectra on which step sizes are searched; risks are of all
LEVEL = "99.9 % of a normal variable, shared among those it is the largest of"
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
        self.dim = in_range("check.dim", dim, 1, 50, "the search over step sizes takes minutes")
        self.context = in_range("check.context", context, 1, 5000, "drawing the contexts takes minutes")
        if context <= dim:
            raise InputError(
                f"check.context={context}: must be above check.dim={dim}, so that S is invertible"
            )
        self.layers = in_range(
            "check.layers", layers, 1, MOST_LAYERS, "the search over step sizes takes minutes"
        )
        self.seed = whole("check.seed", seed, 0)
        self.samples = in_range("check.samples", samples, 200, 10**6 // dim, "the spectra take a gigabyte")

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        own_BD = spectra(rng, self.samples, self.context + 1, self.dim) * (self.context + 1) / self.context
        fresh_BD = spectra(rng, self.samples, self.context + 1, self.dim) * (self.context + 1) / self.context
        masked_BD = spectra(rng, self.samples, self.context, self.dim)
        floor_B = self._floor_given_function(own_BD, fresh_BD)
        least_B = least_by_spectrum(fresh_BD, self.context)
        floor, least = float(floor_B.mean()), float(least_B.mean())
        lower = least - SIGMAS * stderr(least_B)
        unmasked = self._by_layers(fresh_BD, lambda g, s: unmasked_risk(g, s, self.context), self.layers)
        masked = self._by_layers(masked_BD, lambda g, s: (1 - g).square().mean(-1), self.layers, lower)
        lowest_B = min(unmasked, key=lambda risk_B: float(risk_B.mean()))
        lowest, deepest_B = float(lowest_B.mean()), masked[-1]
        deepest_high = float(deepest_B.mean()) + SIGMAS * stderr(deepest_B)
        off = self._integrals_off(fresh_BD[:INTEGRATED])
        sampled = {
            "trace_z": max(
                self._trace_z(own_BD, self.context + 1),
                self._trace_z(fresh_BD, self.context + 1),
                self._trace_z(masked_BD, self.context),
            ),
            # the fitted function is at least as good as any that layers build, on spectra it has not seen
            "floor_z": float((floor_B - lowest_B).mean()) / (stderr(floor_B - lowest_B) + EPSILON),
        }
        token_error = self._token_error()
        # in one dimension the two are the same function
        nearly_least = least - EPSILON * (self.dim + 16) * 64
        verdict, shown = combine(
            [
                (decide(-lower, 0.0), Bound(0.0, "the claim: a floor is above 0", "floor_lower", ">")),
                *(at_most(name, value, 1.0, "rounding") for name, value in off.items()),
                at_most("token_error", token_error, self._token_rounding(), "rounding of sums over columns"),
                *(
                    ("holds" if z <= most else "undecided", Bound(most, LEVEL, name))
                    for (name, z), most in zip(sampled.items(), (SIGMAS_OF_SIX, SIGMAS), strict=True)
                ),
                (
                    "holds" if floor >= nearly_least else "undecided",
                    Bound(
                        nearly_least,
                        "rounding below the least risk of any function of the whole spectrum",
                        "floor",
                        ">",
                    ),
                ),
            ]
        )
        return Finding(
            verdict,
            {
                "floor": floor,
                "floor_stderr": stderr(floor_B),
                "floor_lower": lower,
                "unmasked_lowest": lowest,
                "unmasked_lowest_stderr": stderr(lowest_B),
                "unmasked_by_layers": [float(risk_B.mean()) for risk_B in unmasked],
                "unmasked_by_layers_stderr": [stderr(risk_B) for risk_B in unmasked],
                "masked_by_layers": [float(risk_B.mean()) for risk_B in masked],
                "masked_by_layers_stderr": [stderr(risk_B) for risk_B in masked],
                "token_error": token_error,
                **off,
                **sampled,
            },
            shown,
            Control(
                f"the masked family's loss at {len(masked)} layers: below the floor",
                float(deepest_B.mean()),
                deepest_high < lower,
            ),
            notes=[
                "Losses are divided by d, Sigma = I. floor: the best function of an eigenvalue, fitted on "
                "other spectra; floor_lower: any function of the whole spectrum. The query's own part is "
                "integrated exactly.",
                "masked_by_layers, unmasked_by_layers: best step sizes found, so upper bounds of each "
                "depth's optimum.",
            ],
            remarks=REMARKS,
            kinds={"*": "sampled", "token_error": "tried", "*_off": "tried"},
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
        self,
        spectra_BD: Tensor,
        risk: Callable[[Tensor, Tensor], Tensor],
        layers: int,
        below: float | None = None,
    ) -> list[Tensor]:
        """Risks at the best step sizes found for 1 to L layers, each from the last.

        With `below` as many layers more as it takes to get below that.
        """
        found: list[Tensor] = []
        few_BD, theta = spectra_BD[:SEARCHED], np.zeros(0)
        for count in range(1, MOST_LAYERS + 1):
            arrived = below is None
            if below is not None and found:
                arrived = float(found[-1].mean()) + SIGMAS * stderr(found[-1]) < below
            if count > layers and arrived:
                break
            starts = [_one_more(theta, count, beta) for beta in (0.1, 0.6, 1.2)]
            results = [_minimised(start, few_BD, count, risk) for start in starts]
            theta = min(results, key=lambda result: result[0])[1]
            found.append(risk(response(torch.from_numpy(theta), spectra_BD, count), spectra_BD))
        return found

    def _integrals_off(self, lambda_BD: Tensor) -> dict[str, float]:
        """The risk against its integrals term by term, and the least risk against the risk where it is least
        and its gradient there, in units of rounding."""
        n, D = self.context, self.dim
        rng = generator(self.seed, "control", 1)
        g_BD = torch.from_numpy(rng.uniform(0, 1.5, tuple(lambda_BD.shape)))
        size_B = n / D * lambda_BD.sum(-1)
        by_terms_B = risk_by_terms(g_BD, lambda_BD, n)
        # every term is at most 4 of size / m; D^3 of them are added
        rounding_B = EPSILON * (D + 16) * 64 * size_B / (n + 1)
        form_BDD, linear_BD, _ = quadratic_form(lambda_BD, n)
        best_BD = torch.linalg.solve(form_BDD, linear_BD[..., None])[..., 0].requires_grad_()
        risk_B = unmasked_risk(best_BD, lambda_BD, n)
        (gradient_BD,) = torch.autograd.grad(risk_B.sum(), best_BD)
        largest_B = 1 + best_BD.detach().abs().amax(-1)
        allowed_B = rounding_B * largest_B.square()
        least_off_B = (risk_B.detach() - least_by_spectrum(lambda_BD, n)).abs()
        return {
            "integrals_off": or_infinite(
                float(((unmasked_risk(g_BD, lambda_BD, n) - by_terms_B).abs() / rounding_B).max())
            ),
            "least_off": or_infinite(float((least_off_B / allowed_B).max())),
            "gradient_off": or_infinite(float((gradient_BD.norm(dim=-1) / allowed_B).max())),
        }

    def _trace_z(self, lambda_BD: Tensor, tokens: int) -> float:
        """Return the z of E tr S = D and E tr S^2 = D (1 + (D + 1) / tokens), S the mean of x x^T."""
        s_BD, D = lambda_BD * self.context / tokens, self.dim
        traces = ((s_BD.sum(-1), D), (s_BD.square().sum(-1), D * (1 + (D + 1) / tokens)))
        return max(abs(float(trace_B.mean()) - mean) / stderr(trace_B) for trace_B, mean in traces)

    def _token_rounding(self) -> float:
        """Three layers, each of whose updates adds over n + 1 columns and D rows, in shares of |w| |x_q|."""
        return EPSILON * 3 * 4 * (self.context + self.dim + 8)

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


def risk_by_terms(g_BD: Tensor, lambda_BD: Tensor, context: int) -> Tensor:
    """The same, the moments of Dirichlet's law one by one.

    E prod_i v_i^{2 k_i} = prod_i (1/2)_{k_i} / (m/2)_k, k the sum of the k_i, (a)_k a rising factorial.
    """
    m, D = context + 1, lambda_BD.shape[-1]
    i, j, k = torch.meshgrid(*[torch.arange(D)] * 3, indexing="ij")
    same_ij, same_ik, same_jk = (i == j).double(), (i == k).double(), (j == k).double()
    # (1/2)_1^3 = 1/8 for three different ones, (1/2)_2 (1/2)_1 = 3/8 for two alike, (1/2)_3 = 15/8 for three
    alike = same_ij + same_ik + same_jk
    third_DDD = torch.where(alike == 0, 1.0, torch.where(alike == 1, 3.0, 15.0)).double()
    third_DDD = third_DDD / 8 / (m / 2 * (m / 2 + 1) * (m / 2 + 2))
    second_DD = (1 + 2 * torch.eye(D, dtype=torch.float64)) / 4 / (m / 2 * (m / 2 + 1))
    short_BD = 1 - g_BD
    first_BD = short_BD.square() / 2 / (m / 2)
    cross_BD = 2 * short_BD * (g_BD @ second_DD)
    square_BD = torch.einsum("ijk,bj,bk->bi", third_DDD, g_BD, g_BD)
    return context * (lambda_BD * (first_BD + cross_BD + square_BD)).mean(-1)


def stderr(values_B: Tensor) -> float:
    return float(values_B.std() / len(values_B) ** 0.5)


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
