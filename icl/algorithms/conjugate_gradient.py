"""Preconditioned conjugate gradients on a prompt's least squares (Shewchuk 1994, page 51).

On R(w) = (1/2N) sum_i (<w, x_i> - y_i)^2, from w = 0, whose Hessian is S and minus whose gradient is g.
R replicas, B prompts, D covariates.
"""

import torch
from torch import Tensor

from icl.algorithms.coordinates import moments
from icl.errors import InputError, whole
from icl.tasks.prompts import GramPrompt, TokenPrompt


class ConjugateGradient:
    """`steps` of it. `inverse_DD` is the inverse H^-1 of the preconditioner, the identity by default;
    `first_D` the first direction, H^-1 r_0 by default (any other is no longer conjugate to what follows).

    lds, Section 5 takes H^-1 = P, a block of W_QK that need be neither symmetric nor definite, and d_0 = q.
    """

    def __init__(self, steps: int, inverse_DD: Tensor | None = None, first_D: Tensor | None = None) -> None:
        self.steps = whole("algorithm.steps", steps, 1)
        self.inverse_DD, self.first_D = inverse_DD, first_D

    def weights(self, S_RBDD: Tensor, g_RBD: Tensor) -> Tensor:
        """w after the steps, (R, B, D). Where a direction or a residual is zero, w stays."""
        D = g_RBD.shape[-1]
        for name, given in (("inverse", self.inverse_DD), ("first", self.first_D)):
            if given is not None and given.shape[-1] != D:
                raise InputError(
                    f"algorithm.{name}: has {given.shape[-1]} columns, prompts have {D} covariates"
                )
        P_DD = torch.eye(D, dtype=g_RBD.dtype) if self.inverse_DD is None else self.inverse_DD
        w_RBD, r_RBD = torch.zeros_like(g_RBD), g_RBD
        d_RBD = r_RBD @ P_DD.T if self.first_D is None else self.first_D.expand_as(g_RBD)
        delta_RB1 = _dot(r_RBD, d_RBD)
        for _ in range(self.steps):
            z_RBD = (S_RBDD * d_RBD[..., None, :]).sum(-1)
            alpha_RB1 = _ratio(delta_RB1, _dot(d_RBD, z_RBD))
            w_RBD, r_RBD = w_RBD + alpha_RB1 * d_RBD, r_RBD - alpha_RB1 * z_RBD
            v_RBD, before_RB1 = r_RBD @ P_DD.T, delta_RB1
            delta_RB1 = _dot(r_RBD, v_RBD)
            d_RBD = v_RBD + _ratio(delta_RB1, before_RB1) * d_RBD
        return w_RBD

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        S_RBDD, g_RBD, x_RBD = moments(prompt, None)
        return (self.weights(S_RBDD, g_RBD) * x_RBD).sum(-1)


def _dot(a_RBD: Tensor, b_RBD: Tensor) -> Tensor:
    return (a_RBD * b_RBD).sum(-1, keepdim=True)


def _ratio(top: Tensor, bottom: Tensor) -> Tensor:
    return torch.where(bottom == 0, 0.0, top / torch.where(bottom == 0, 1.0, bottom))
