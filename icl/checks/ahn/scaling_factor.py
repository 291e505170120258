"""ahn, section 2: "The scaling factor 1/n is used only for ease of notation and does not influence the
expressive power of the transformer".

At a given n, eqs. (3), (4) at the weights (P, Q) are the same recursion without 1/n at (P/n, Q). So both have
the same functions, and the same least risk. Weights that are kept while n changes are another matter.

L layers, B prompts, N = `context` examples, M = N + 1 tokens of width P = D + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import finding, tried
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.models.tokens import stack_forward
from icl.random import generator

PROMPTS = 64
SOURCE = "rounding: 64 eps times n (d + 1), carried through the layers by norms"


@dataclass(eq=False)
class ScalingFactor(PromptSettings):
    """Settings: of the prompts, and the layers of the stack, whose weights are random."""

    dim: int = integer(5, 1, 64, "a layer takes dim^2 operations a token")
    context: int = integer(20, 2, 10_000, "all tokens meet all tokens")
    layers: int = integer(3, 1, 4, "a prediction has degree 3^layers")

    reference = "Section 2, after eq. (4)"
    claim = (
        "At a given n, a stack with the factor 1/n at the weights (P, Q) is the stack without it at "
        "(P/n, Q): the factor does not influence the expressive power."
    )

    def measure(self) -> Finding:
        streams = [generator(self.seed, "check")]
        prompt = self.law.token_prompts(streams, PROMPTS)
        z_BMP = torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0, :, None]], dim=1)
        shape = (2, self.layers, self.dim + 1, self.dim + 1)
        P_LPP, Q_LPP = torch.from_numpy(streams[0].standard_normal(shape))
        # so that no layer's update is larger than its input, by their norms
        Q_LPP = Q_LPP * self.context / (_norm(P_LPP) * _norm(Q_LPP) * _norm(z_BMP).max() ** 2)
        given = P_LPP[None, :, None], Q_LPP[None, :, None], prompt.context_RBNP, prompt.query_RBP
        with_factor_BP = stack_forward(*given)[0]
        scaled = _layers_without_factor(P_LPP / self.context, Q_LPP, z_BMP)
        carried_B = _carried(_norm(P_LPP) * _norm(Q_LPP) / self.context, [z_BMP.mT, *scaled[:-1]])
        rounding_B = ROUNDING * self.context * (self.dim + 1) * carried_B
        at_scaled_B, at_same_B = (
            (layers[-1][:, :, -1] - with_factor_BP)[:, -1].abs() / rounding_B
            for layers in (scaled, _layers_without_factor(P_LPP, Q_LPP, z_BMP))
        )
        return finding(
            [
                tried(difference=float(at_scaled_B.max()))
                .means(
                    "largest difference of the two predictions, at P/n and at P, over what rounding can make "
                    "of it"
                )
                .at_most(1.0, SOURCE)
            ],
            Control(
                "the median of that difference where P is kept",
                float(at_same_B.median()),
                bool((at_same_B > 1).float().mean() > 0.5),
            ),
            notes=[
                "Weights that are trained at one n and used at another are no matter of expressive power: "
                "for them the factor is part of the model."
            ],
        )


def _norm(M: Tensor) -> Tensor:
    """Return Frobenius norms of the last two axes, which stay."""
    return torch.linalg.matrix_norm(M, keepdim=True)


def _carried(weight_L11: Tensor, inputs: list[Tensor]) -> Tensor:
    """Return how large one relative rounding error of each layer can be after all of them, by the norms of
    the layers' weights and inputs."""
    error_B11 = torch.zeros_like(_norm(inputs[0]))
    for weight_11, Z_BPM in zip(weight_L11, inputs, strict=True):
        size_B11 = _norm(Z_BPM)
        grown = 1 + 3 * weight_11 * size_B11**2  # the update is of degree 3
        error_B11 = grown * error_B11 + size_B11 + weight_11 * size_B11**3
    return error_B11[:, 0, 0]


def _layers_without_factor(P_LPP: Tensor, Q_LPP: Tensor, z_BMP: Tensor) -> list[Tensor]:
    """Return the tokens, as columns, after every layer of Z <- Z + P Z M Z^T Q Z."""
    Z_BPM, layers = z_BMP.mT, []
    for P_PP, Q_PP in zip(P_LPP, Q_LPP, strict=True):
        examples_BPN = Z_BPM[:, :, :-1]  # M leaves the query out
        Z_BPM = Z_BPM + P_PP @ (examples_BPN @ (examples_BPN.mT @ (Q_PP @ Z_BPM)))
        layers.append(Z_BPM)
    return layers
