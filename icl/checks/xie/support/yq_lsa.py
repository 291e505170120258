"""y_q-LSA, xie eqs. (11)-(12), and the step of gradient descent around which its statements turn.

R replicas, H heads, D covariates, P = D + 1 token width, C = `context` tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import gradient_norm
from icl.checks.xie.support.initial_guess import risk_under
from icl.constructions.xie.initial_guess import one_step_gd
from icl.models import Parametrization, YqLSA
from icl.tasks import LinearRegressionLaw
from icl.theory.quadratic import EPSILON, QuadraticRisk


def read_in(v_D: Tensor) -> Tensor:
    """Return what the guess y_q = <v, x_q> does to a query token (x_q, 0)."""
    D = len(v_D)
    return torch.eye(D + 1, dtype=v_D.dtype) + torch.nn.functional.pad(v_D[None], (0, 1, D, 0))


def loaded(dim: int, matrices: Mapping[str, Tensor]) -> YqLSA:
    model = YqLSA(dim, 1)
    model.load({name: matrix.detach() for name, matrix in matrices.items()})
    return model


def descent_from(w_star_D: Tensor, eta: float, guess_D: Tensor | None = None) -> YqLSA:
    """Eq. (7) with v = w*, the step of eq. (10); or with another guess."""
    P_PP, Q_PP = one_step_gd(w_star_D, eta)
    v_D = w_star_D if guess_D is None else guess_D
    return loaded(len(w_star_D), {"P": P_PP[None, None], "Q": Q_PP[None, None], "v": v_D[None, None, None]})


def predictor(model: YqLSA) -> tuple[Tensor, Tensor]:
    """v and the symmetric X_k, k <= d: the prediction is <v, x_q> + sum_k x_k <G, X_k>, and nothing else."""
    P_PP, Q_PP, v_D = model.P.detach()[0, 0], model.Q.detach()[0, 0], model.v.detach()[0, 0, 0]
    X_DPP = torch.einsum("p,rk->kpr", P_PP[-1], (Q_PP @ read_in(v_D))[:, :-1])
    return v_D, (X_DPP + X_DPP.mT) / 2


class LayerRisk:
    """Risk (4) of single layers under one law, and the size of its gradient in all of a y_q-LSA's weights."""

    def __init__(self, law: LinearRegressionLaw) -> None:
        self.dim, self.quadratic = law.dim, risk_under(law)
        # of its moments, polynomials in w* with positive coefficients, these are the sizes
        self._of_sizes = risk_under(replace(law, mean_RD=law.mean_RD.abs()))

    def value(self, model: Parametrization) -> float:
        return _value(self.quadratic, model).item()

    def excess(self, model: Parametrization) -> tuple[float, float]:
        """Return the excess over the least risk of all X_k and read-outs, and its rounding."""
        (P_RLHPP, Q_RLHPP), ends = model.stack(), model.ends()
        read_in, read_out = (None if end is None else end[0] for end in ends)
        with torch.no_grad():
            layer = self.quadratic.of_layer(P_RLHPP[0, 0], Q_RLHPP[0, 0], read_in, read_out)
            return self.quadratic.excess(*layer)

    def gradient(self, model: YqLSA) -> tuple[float, float]:
        """Return the gradient's norm in (P, Q, v), and what rounding can make of it."""
        P = self.dim + 1
        # along one entry's path: M x, J and T on both sides, the heads, the moments
        operations = self.quadratic.longest_sum() + 4 * P + 30
        return _gradient_norm(self.quadratic, model), EPSILON * operations * self.size(model)

    def norm_by_differences(self, model: YqLSA, rng: np.random.Generator) -> float:
        """Return the norm of that gradient once more, without autograd."""
        names, weights = zip(*model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(_value(self.quadratic, model), weights)

        def value(*moved: Tensor) -> Tensor:
            return _value(self.quadratic, loaded(self.dim, dict(zip(names, moved, strict=True))))

        with torch.no_grad():
            return gradient_norm(value, weights, gradients, rng)

    def size(self, model: YqLSA) -> float:
        """Return the size of the gradient's terms: its norm with all of them made positive."""
        return _gradient_norm(self._of_sizes, _model_of_sizes(model))


def _value(risk: QuadraticRisk, model: Parametrization) -> Tensor:
    (P_RLHPP, Q_RLHPP), ends = model.stack(), model.ends()
    return risk.value_of_layer(P_RLHPP[:, 0], Q_RLHPP[:, 0], *ends).sum()


def _gradient_norm(risk: QuadraticRisk, model: YqLSA) -> float:
    gradients = torch.autograd.grad(_value(risk, model), list(model.parameters()))
    return torch.cat([gradient.flatten() for gradient in gradients]).norm().item()


def _model_of_sizes(model: YqLSA) -> YqLSA:
    """Weights at which, with w* >= 0, all terms of the risk add up: they predict the opposite."""
    Q_RLPP = model.Q.detach().abs()
    Q_RLPP[..., -1] *= -1
    return loaded(model.dim, {"P": -model.P.detach().abs(), "Q": Q_RLPP, "v": -model.v.detach().abs()})


def path_length(dim: int, context: int) -> int:
    """Additions and products along one prediction's path: scores, values, read-in and read-out."""
    return 2 * (context + 1) + 5 * (dim + 1) + 2
