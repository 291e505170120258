"""xie, section 3.1 and A.1: "with d + 1 heads one can explicitly construct any target configuration".

A configuration is a tuple of matrices X_k, k = 1 .. d + 1, of size P x P, and H heads make X_k = sum_h b_h
a_hk^T. b_h = e_h and a_hk = row h of X_k make any tuple with H = P heads. With fewer the P x P K matrix
[X_1 .. X_K] has rank H: no weights come nearer than its further singular values (Eckart and Young 1936),
so for tuples as such d + 1 is the least number. Of the X_k only symmetric parts enter the risk, for which
d heads suffice (xie/theorem1).

P = K = D + 1 token width, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.models import MultiHead
from icl.random import generator

TUPLES = 16
SOURCE = "none: products with 0 and 1 and sums with 0 do not round"


@dataclass(eq=False)
class Configurations:
    """Settings: dimension, seed of the tuples."""

    dim: int = integer(10, 1, 32, "a tuple has (dim + 1)^3 numbers")
    seed: int = integer(0, 0)

    reference = "Section 3.1, after Theorem 1; Appendix A.1"
    claim = "With d + 1 heads one can construct any tuple of matrices X_k = sum_h b_h a_hk^T, k = 1 .. d + 1."

    def __post_init__(self) -> None:
        validate(self)

    def measure(self) -> Finding:
        P, rng = self.dim + 1, generator(self.seed, "check")
        X_TKPP = torch.from_numpy(rng.standard_normal((TUPLES, P, P, P)))
        error = max(float((made_by(heads_of(X_KPP)) - X_KPP).abs().max()) for X_KPP in X_TKPP)
        # over all weights of d heads, as a share of the tuple's norm
        least = torch.linalg.svdvals(X_TKPP.transpose(1, 2).flatten(2))[:, -1] / X_TKPP.flatten(1).norm(dim=1)
        per_head = P + P * P
        return finding(
            [
                tried(error=error)
                .means("largest error of an entry of the tuples that d + 1 heads construct")
                .at_most(0.0, SOURCE),
                exact(parameters=P * per_head - P**3)
                .means("parameters of d + 1 heads, (d + 1) + (d + 1)^2 each, less the numbers of a tuple")
                .above(-0.5, "a whole number; none may be missing"),
                exact(parameters_of_d_heads=self.dim * per_head - P**3).means(
                    "same difference for d heads, negative"
                ),
            ],
            Control(
                "the least distance of such a tuple from all that d heads make, as a share of its norm",
                float(least.min()),
                float(least.min()) > 0,
            ),
            remarks=[
                "For tuples as such d + 1 is the least number: d heads make matrices [X_1 .. X_K] of rank "
                "d. In the "
                "risk only the symmetric parts of the X_k enter, and there d heads suffice (xie/theorem1)."
            ],
        )


def heads_of(X_KPP: Tensor) -> MultiHead:
    """Return the heads of A.1: the last row of P_h is e_h, column k of Q_h is row h of X_k."""
    P = len(X_KPP)
    heads = MultiHead(P - 1, 1, P)
    P_HPP, Q_HPP = torch.zeros(P, P, P, dtype=torch.float64), X_KPP.permute(1, 2, 0)
    P_HPP[:, -1] = torch.eye(P, dtype=torch.float64)
    heads.load({"P": P_HPP[None, None], "Q": Q_HPP[None, None]})
    return heads


def made_by(heads: MultiHead) -> Tensor:
    """X_k = sum_h b_h a_hk^T of the heads of one replica."""
    P_RLHPP, Q_RLHPP = heads.stack()
    return torch.einsum("hp,hrk->kpr", P_RLHPP[0, 0, :, -1], Q_RLHPP[0, 0]).detach()
