"""The layer of Section 5 on Gram matrices, and the identities of (17), E.2 and E.3.

B sequences, s window, P = s + 1 token width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.algorithms import ConjugateGradient
from icl.checks.lds.support.evidence import absolute, predict_on_tokens
from icl.tasks.dynamical_system import gram_prompts, token_prompts


class PcgLayer:
    """Blocks of Section 5: P, p of W_QK and q, c_N of W_V, on Gram matrices (B, P, P)."""

    def __init__(self, b_P: Tensor, a_KP: Tensor, G_BPP: Tensor) -> None:
        s = len(a_KP)
        self.P_DD, self.p_D, self.q_D, self.c_N = a_KP[:, :s], a_KP[:, s], b_P[:s], b_P[s]
        self.H_BDD, self.g_BD, self.g0_B = G_BPP[:, :s, :s], G_BPP[:, :s, s], G_BPP[:, s, s]

    def predictor(self) -> Tensor:
        """Return w (B, s) = P H q + (p q^T + c_N P) g + c_N g0 p."""
        return self._rest() + self._Hq() @ self.P_DD.T + self.c_N * self.g0_B[:, None] * self.p_D

    def gamma(self) -> Tensor:
        """Return Gamma = c_N g0 p q^T / (q^T H q), (B, s, s)."""
        return self._rank_one(self.q_D.expand_as(self.g_BD))

    def e3(self) -> Tensor:
        """Return E.3's P' = c_N g0 p v^T / (v^T v), v = H q."""
        return self._rank_one(self._Hq())

    def seventeen(self, extra_BDD: Tensor) -> Tensor:
        """Return (extra + P) H q + (p q^T + c_N P) g."""
        return self._rest() + ((extra_BDD + self.P_DD) @ self._Hq()[..., None])[..., 0]

    @property
    def spread_B(self) -> Tensor:
        """Return how much larger the terms of Gamma H q are than their sum: |q|^T |H q| / |q^T H q|."""
        Hq_BD = self._Hq()
        return ((self.q_D * Hq_BD).abs().sum(-1) / (self.q_D * Hq_BD).sum(-1).abs()).clamp(min=1)

    def expansion(self) -> tuple[Tensor, Tensor]:
        """Return E.2's w_2 = [(alpha_0 + alpha_1 beta_1) H^-1 - alpha_0 alpha_1 P] H q + alpha_1 P g, and
        sizes."""
        q_BD = self.q_D.expand_as(self.g_BD)
        Hq_BD = self._Hq()
        first_B1 = (self.g_BD * q_BD).sum(-1, keepdim=True)
        alpha0_B1 = first_B1 / (q_BD * Hq_BD).sum(-1, keepdim=True)
        r1_BD = self.g_BD - alpha0_B1 * Hq_BD
        Pr1_BD = r1_BD @ self.P_DD.T
        second_B1 = (r1_BD * Pr1_BD).sum(-1, keepdim=True)
        beta_B1 = second_B1 / first_B1
        d1_BD = Pr1_BD + beta_B1 * q_BD
        z1_BD = (self.H_BDD @ d1_BD[..., None])[..., 0]
        alpha1_B1 = second_B1 / (d1_BD * z1_BD).sum(-1, keepdim=True)
        parts = [
            (alpha0_B1 + alpha1_B1 * beta_B1) * q_BD,
            -alpha0_B1 * alpha1_B1 * (Hq_BD @ self.P_DD.T),
            alpha1_B1 * (self.g_BD @ self.P_DD.T),
        ]
        # alpha_1 and beta_1 inherit r_1's cancellation, of the size of g over r_1, twice.
        lost_B1 = (self.g_BD.abs().amax(-1, keepdim=True) / r1_BD.abs().amax(-1, keepdim=True)).clamp(min=1)
        parts_XBD = torch.stack(parts)
        size_BD = parts_XBD.abs().sum(0)
        return parts_XBD.sum(0), size_BD.amax(-1, keepdim=True) * lost_B1**2

    def _Hq(self) -> Tensor:
        return self.H_BDD @ self.q_D

    def _rest(self) -> Tensor:
        return (self.g_BD @ self.q_D)[:, None] * self.p_D + self.c_N * self.g_BD @ self.P_DD.T

    def _rank_one(self, v_BD: Tensor) -> Tensor:
        """Return c_N g0 p v^T / (v^T H q)."""
        dual_BD = v_BD / (v_BD * self._Hq()).sum(-1, keepdim=True)
        return (self.c_N * self.g0_B[:, None] * self.p_D)[..., :, None] * dual_BD[..., None, :]


def identity_errors(y_RBT: Tensor, b_P: Tensor, a_KP: Tensor) -> tuple[dict[str, float], float]:
    """Return errors of the identities on single sequences and of (17) as printed, each as a share of the
    sizes of all terms."""
    s = len(a_KP)
    prompt, gram = token_prompts(y_RBT, s), gram_prompts(y_RBT, s)
    x_BD, G_BPP = gram.query_RBP[0, :, :s], gram.gram_RBPP[0]
    layer = PcgLayer(b_P, a_KP, G_BPP)
    out_B = predict_on_tokens(b_P, a_KP, prompt)
    size_B = predict_on_tokens(b_P.abs(), a_KP.abs(), absolute(prompt)) * layer.spread_B

    def error(w_BD: Tensor) -> float:
        return float((((w_BD * x_BD).sum(-1) - out_B) / size_B).abs().max())

    errors = {
        "predictor_error": error(layer.predictor()),
        "gamma_error": error(layer.seventeen(layer.gamma())),
        "e3_error": error(layer.seventeen(layer.e3())),
    }
    H_BDD, g_BD = G_BPP[:, :s, :s], G_BPP[:, :s, s]
    steps_BD = ConjugateGradient(2, layer.P_DD, layer.q_D).weights(H_BDD[None], g_BD[None])[0]
    expanded_BD, terms_BD = layer.expansion()
    errors["expansion_error"] = float(((steps_BD - expanded_BD) / terms_BD).abs().max())
    printed = error(layer.seventeen(layer.gamma() @ H_BDD))
    return errors, printed
