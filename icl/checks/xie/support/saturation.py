"""Multi-head LSA with as many heads as it can use, and one step of gradient descent from w*, at one xie law.

Least risk over any heads: a convex form in which all heads of all numbers have their place (a lower bound),
and D heads that attain it. The step is eq. (7) with y_q = <w*, x_q> at the best eta.

R seeds, H heads, D covariates, C = `context` tokens, P = K = D + 1, S coordinates of a symmetric matrix.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import gradient_norm
from icl.checks.given_weights import require_family
from icl.checks.rounding import ROUNDING
from icl.checks.settings import in_range
from icl.checks.verdict import Weights
from icl.checks.xie.support.initial_guess import MAX_DIM, TOO_LARGE, bounded, risk_under
from icl.constructions.xie.initial_guess import heads_of_matrices, one_step_gd
from icl.errors import InputError
from icl.models import Full, MultiHead
from icl.tasks import LinearRegressionLaw
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadratic import EPSILON, ConvexBound, LabelMoments, QuadraticRisk, constant_error
from icl.theory.xie.initial_guess import guess_error, optimal_matrices

BLUR = 1e-10  # a relative error that each bound must be small enough to see


class Saturation:
    """Exact risks of a law with Sigma = Sigma_w = I and one seed, their gap and its rounding."""

    def __init__(self, law: LinearRegressionLaw) -> None:
        self.law, self.dim, self.context = law, law.dim, law.context_R[0]
        self.w_star_D, self.guess_D, self.bias = law.mean_RD[0], law.guess_RD[0], law.guess_bias
        self.risk = risk_under(law)

    @cached_property
    def least(self) -> ConvexBound:
        return self.risk.convex_bound()

    @property
    def rounding(self) -> float:
        return 2 * self.least.rounding  # of the bound and of the risk at a point

    @cached_property
    def descent_risk(self) -> float:
        """One step from w* with the best eta."""
        law, heads = self.step()
        return float(risk_under(law).value_of_layer(*heads))

    def step(self) -> tuple[LinearRegressionLaw, tuple[Tensor, Tensor]]:
        """One head that makes it, and the law that guesses y_q = <w*, x_q>."""
        P_PP, Q_PP = one_step_gd(self.w_star_D, isotropic_step(self.dim, self.context))
        return with_guess(self.law, self.w_star_D), (P_PP[None], Q_PP[None])

    @property
    def gap(self) -> float:
        """The least risk over all heads less the step's, with digits of its own however small w* is.

        In u = w - w* the risk is one of what is odd plus one of what is even. The least of the first is the
        best step's; the second is `guess_error` times the least mean square at which G makes the constant 1.
        """
        return self.constant()[0] * self.guess_error

    @property
    def gap_rounding(self) -> float:
        if not _step_is_best(self.dim, self.context):
            return float("inf")
        value, rounding = self.constant()
        return (rounding + EPSILON * (self.dim + 8) * value) * self.guess_error

    @property
    def risks_error(self) -> float:
        """Distance of the two risks' difference from `gap`."""
        return abs(self.least.value - self.descent_risk - self.gap)

    @property
    def blurred(self) -> float:
        """A relative error BLUR of the risks' terms."""
        return BLUR * self.risk.constant

    def constant(self, vanishing: int = 0) -> tuple[float, float]:
        """Return the least E(1 - <G, Y>)^2, and its rounding; Y may have to vanish on some covariates."""
        return _constant_error(self.dim, self.context, vanishing)

    def excess(self, P_HPP: Tensor, Q_HPP: Tensor) -> tuple[float, float]:
        """Return these heads' excess over the least risk, not as a difference of risks, and its rounding."""
        return self.risk.excess(*self.risk.of_layer(P_HPP, Q_HPP))

    @property
    def guess_error(self) -> float:
        """|w* - v|^2 + b^2."""
        return guess_error(self.w_star_D, self.guess_D, self.bias, self.law.Sigma_RDD[0])

    def heads(self) -> tuple[Tensor, Tensor]:
        """D heads (P_HPP, Q_HPP) of least risk."""
        return heads_of_matrices(optimal_matrices(self.w_star_D, self.guess_D, self.bias, self.context))

    def beside(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """`heads()` and a random one that adds a quarter to their risk: at the least there is no linear term.

        With w* out of the labels, its b = (g, 1) and a_k = c_k (h, 1) meet every entry of the Gram matrix.
        """
        (P_HPP, Q_HPP), D = self.heads(), self.dim
        g_D, h_D = (vector / np.linalg.norm(vector) for vector in rng.standard_normal((2, D)))
        c_D = torch.from_numpy(rng.standard_normal(D))
        b_P, a_P = (torch.tensor([*vector, 1.0], dtype=torch.float64) for vector in (g_D, h_D))
        for vector_P in (b_P, a_P):
            vector_P[:D] -= self.w_star_D  # <z, (g - w*, 1)> = <x, g> + <u, x>
        further = torch.zeros(2, 1, D + 1, D + 1, dtype=torch.float64)
        further[0, 0, -1], further[1, 0, :, :D] = b_P, torch.outer(a_P, c_D)
        P_HPP, Q_HPP = torch.cat([P_HPP, further[0]]), torch.cat([Q_HPP, 0 * further[1]])
        alone = float(self.risk.value_of_layer(P_HPP, Q_HPP))
        Q_HPP[-1] = further[1]
        Q_HPP[-1] *= (alone / 4 / (float(self.risk.value_of_layer(P_HPP, Q_HPP)) - alone)) ** 0.5
        return P_HPP, Q_HPP

    def constructed(self, heads: int, scale: float = 1.0) -> tuple[float, float]:
        """`excess` of heads of least risk: with D heads `heads()`, with more A.1's D + 1 (b_h = e_h, a_hk row
        h of X_k) and the others zero; or of such with all keys `scale` times as large."""
        if heads == self.dim:
            P_HPP, Q_HPP = self.heads()
            return self.excess(P_HPP, scale * Q_HPP)
        return self.risk.excess(self.tuple_of_heads(heads, scale))

    def tuple_of_heads(self, heads: int, scale: float = 1.0) -> Tensor:
        """Return the X_k of A.1's D + 1 heads, of any number of which the others are zero."""
        unused = (0, 0, 0, heads - self.dim - 1)
        b_HP = torch.nn.functional.pad(torch.eye(self.dim + 1, dtype=torch.float64), unused)
        X_KPP = optimal_matrices(self.w_star_D, self.guess_D, self.bias, self.context)
        a_HKP = torch.nn.functional.pad(X_KPP.transpose(0, 1), (0, 0, *unused))
        return torch.einsum("hp,hkr->kpr", b_HP, scale * a_HKP)

    def at(self, P_HPP: Tensor, Q_HPP: Tensor) -> tuple[float, float]:
        """Risk, and the norm of its gradient in all P_h and Q_h."""
        P_HPP, Q_HPP = P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()
        risk = self.risk.value_of_layer(P_HPP, Q_HPP)
        gradients = torch.autograd.grad(risk, (P_HPP, Q_HPP))
        return risk.item(), float(torch.stack(gradients).norm())

    @property
    def size(self) -> float:
        """Return E t^2 and E y_q^2, of which every risk is a difference."""
        squares = [float(vector_D.square().sum()) for vector_D in (self.w_star_D, self.guess_D)]
        return self.dim + sum(squares) + self.bias**2

    def norm_by_differences(self, P_HPP: Tensor, Q_HPP: Tensor, rng: np.random.Generator) -> float:
        """Return the norm of the gradient once more, without autograd."""
        weights = [P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()]
        gradients = torch.autograd.grad(self.risk.value_of_layer(*weights), weights)
        with torch.no_grad():
            return gradient_norm(self.risk.value_of_layer, weights, gradients, rng)

    def rounding_at(self, P_HPP: Tensor, Q_HPP: Tensor) -> tuple[float, float]:
        """Return what rounding can make of `at` where y_q = 0: 2^-52 times the summands and size of its
        terms.

        The form is summed over x and u, tokens J (x, <u, x>) with w = w* + u and |J| <= 1 + |w*|.
        """
        D, C, P = self.dim, self.context, self.dim + 1
        J_PP = torch.eye(P, dtype=torch.float64)
        J_PP[D, :D] = self.w_star_D
        X_KPP = torch.einsum("hp,hrk->kpr", P_HPP[:, -1].abs(), Q_HPP.abs())
        norm_X = float((J_PP.T.abs() @ X_KPP @ J_PP.abs()).norm())
        # E|G|^2 = E|M|^2 + (E|M|^2 + E tr(M)^2) / C, M = [[I, u], [u^T, |u|^2]], u ~ N(0, I).
        square_G = (D**2 + 5 * D) * (1 + 1 / C) + (4 * D**2 + 2 * D) / C
        linear, chain = float(self.risk.linear_KS.norm()), float(P_HPP.norm() + Q_HPP.norm())
        summands = P + P * (P + 1) // 2 + 4 * P  # over K, over S, and through J on both sides
        value = square_G * norm_X**2 + 2 * linear * norm_X + self.risk.constant
        slope = 2 * (square_G * norm_X + linear) * (1 + float(self.w_star_D.norm())) ** 2 * chain
        return EPSILON * summands * P * value, EPSILON * summands * slope


def best_multiple(case: Saturation) -> float:
    """Return the best step size of one head that makes a step from w*, by its risk at three sizes."""
    law, (P_HPP, Q_HPP) = case.step()
    risk = risk_under(law)
    low, middle, high = (float(risk.value_of_layer(P_HPP, scale * Q_HPP)) for scale in (0.0, 1.0, 2.0))
    return isotropic_step(case.dim, case.context) * (0.5 + (low - middle) / (low - 2 * middle + high))


@lru_cache(maxsize=1024)
def _step_is_best(dim: int, context: int) -> bool:
    """Return whether the step is best among what is odd in u; at w* = 0, y_q = 0 nothing else is left."""
    identity_DD, zero_D = torch.eye(dim, dtype=torch.float64), torch.zeros(dim, dtype=torch.float64)
    risk = QuadraticRisk.linear_regression(identity_DD, identity_DD, context, target_sign=1)
    P_PP, Q_PP = one_step_gd(zero_D, 1.0)
    return risk.is_least_along(risk.of_layer(P_PP[None], Q_PP[None])[0])


@lru_cache(maxsize=1024)
def _constant_error(dim: int, context: int, vanishing: int) -> tuple[float, float]:
    identity_DD, zero_D = torch.eye(dim, dtype=torch.float64), torch.zeros(dim, dtype=torch.float64)
    return constant_error(LabelMoments(identity_DD, identity_DD, zero_D, 0.0), context, vanishing)


def with_guess(law: LinearRegressionLaw, guess_D: Tensor, bias: float = 0.0) -> LinearRegressionLaw:
    """Return the same prompts with y_q = <guess, x_q> + bias."""
    return replace(law, guess_RD=guess_D[None], guess_bias=bias)


def given_heads(weights: Weights, statement: str) -> tuple[list[Saturation], Tensor, Tensor]:
    """Each seed's law, P and Q (R, H, P, P) of one layer of LSA trained on a law of the xie paper."""
    require_family(weights, statement, ["multihead", "full"])
    law = weights.regression(statement)
    in_range("check.weights: their dimension", law.dim, 1, MAX_DIM, TOO_LARGE)
    identity_DD = torch.eye(law.dim, dtype=torch.float64)
    distances = [float((M_RDD - identity_DD).abs().max()) for M_RDD in (law.Sigma_RDD, law.Sigma_w_RDD)]
    if max(distances) > ROUNDING or law.label_noise or law.read_out != 1:
        raise InputError(
            f"check.weights: {statement} takes x ~ N(0, I), w ~ N(w*, I), labels without noise and "
            "read_out 1; their law is another"
        )
    P = weights.matrices.get("P", torch.empty(0))
    depth = P.shape[1] if P.ndim > 1 else 0
    if depth != 1:
        raise InputError(f"check.weights: {statement} is about one layer, these have {depth} layers")
    model = Full(law.dim, 1) if weights.family == "full" else MultiHead(law.dim, 1, P.shape[2])
    model.load({name: matrix.to(torch.float64) for name, matrix in weights.matrices.items()})
    P_RLHPP, Q_RLHPP = model.stack()
    laws = [Saturation(law.replica(r)) for r in range(len(P_RLHPP))]
    for case in laws:
        for size in (float(case.w_star_D.norm()), float(case.guess_D.norm()), abs(case.bias)):
            bounded("check.weights: the prior mean or guess of their law", size)
    return laws, P_RLHPP[:, 0].detach(), Q_RLHPP[:, 0].detach()
