"""What runs of linear regression observe of the set S of ahn's Theorems 3 and 4: how far the weights are from
it, and what their projection on it would cost.

R replicas, L layers, D covariates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from icl.tasks.law import Model, RiskFunction
from icl.theory.distance import distance_to_identity
from icl.theory.polynomial import InvariantRisk, scalars_on_s

if TYPE_CHECKING:
    from icl.tasks.linear_regression import LinearRegressionLaw


class OnS:
    """The distances of every A and B, and `risk_on_s` where the law is the theorems'."""

    def __init__(self, law: LinearRegressionLaw, model: Model, risk: RiskFunction | None) -> None:
        self.root_RDD, self.risk = law.root_RDD, risk
        self.shapes = model.parametrization.shapes()

    def names(self) -> Sequence[str]:
        layers = {name: range(shape[0]) for name, shape in self.shapes.items()}
        found: list[str] = []
        if "A" in layers:
            found += ["dist_preconditioned", "dist_plain"]
            found += [f"dist_{kind}_A{i}" for kind in ("preconditioned", "plain") for i in layers["A"]]
            found += [f"dist_B{i}" for i in layers.get("B", ())]
        return found + (["risk_on_s"] if self.risk is not None else [])

    def at(self, model: Model) -> Mapping[str, Tensor]:
        found = distances(model.parametrization.matrices(), self.root_RDD)
        return found if self.risk is None else found | {"risk_on_s": self.risk(model)}


def distances(matrices: Mapping[str, Tensor], root_RDD: Tensor) -> dict[str, Tensor]:
    """Dist to the sets of Theorems 3 and 4 per layer, and the maximum over A's layers; {} without A.

    `root_RDD` is F with F F^T = Sigma.
    """
    if "A" not in matrices:
        return {}
    A_RLDD, root_R1DD = matrices["A"], root_RDD[:, None]
    preconditioned_RL = distance_to_identity(root_R1DD.mT @ A_RLDD @ root_R1DD)
    plain_RL = distance_to_identity(A_RLDD)
    found = {"dist_preconditioned": preconditioned_RL.amax(1), "dist_plain": plain_RL.amax(1)}
    found |= {f"dist_preconditioned_A{layer}": d for layer, d in enumerate(preconditioned_RL.unbind(1))}
    found |= {f"dist_plain_A{layer}": d for layer, d in enumerate(plain_RL.unbind(1))}
    if "B" in matrices:
        plain_B_RL = distance_to_identity(matrices["B"])
        found |= {f"dist_B{layer}": d for layer, d in enumerate(plain_B_RL.unbind(1))}
    return found


def risk_on_s(model: Model, law: LinearRegressionLaw) -> RiskFunction | None:
    """Exact risk of the weights' projection on the set S of ahn's Theorems 3 and 4, if the law is theirs."""
    family = model.parametrization
    whitened_RDD = law.root_RDD.mT @ law.Sigma_w_RDD @ law.root_RDD
    isotropic = bool((whitened_RDD - torch.eye(law.dim, dtype=torch.float64)).abs().max() < 1e-9)
    theirs = isotropic and law.read_out == -1 and not law.label_noise
    theirs = theirs and not law.mean_RD.any() and not law.guesses
    if not family.sparse or model.activation != "identity" or not theirs:
        return None
    with_b = family.with_b
    try:
        risks = {n: InvariantRisk(law.dim, n, family.layers, with_b) for n in set(law.context_R)}
    except ValueError:
        return None  # too deep for the exact polynomial
    Sigma_RDD = law.Sigma_RDD

    def risk(model: Model) -> Tensor:
        A_RLDD, B_RLDD = model.parametrization.sparse_weights()
        values = []
        for r, n in enumerate(law.context_R):
            if with_b and B_RLDD is not None:
                full_LDD = torch.cat([B_RLDD[r], torch.zeros_like(A_RLDD[r, :1])])
                a_L, beta_L = scalars_on_s(A_RLDD[r], Sigma_RDD[r], full_LDD)
                values.append(risks[n].value(a_L.tolist(), beta_L.tolist()[:-1]))
            else:
                a_L, _ = scalars_on_s(-A_RLDD[r], Sigma_RDD[r])
                values.append(risks[n].value(a_L.tolist()))
        return torch.tensor(values, dtype=torch.float64)

    return risk
