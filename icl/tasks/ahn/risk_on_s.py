"""The exact risk of weights projected on the set S of ahn's Theorems 3 and 4.

R replicas, L layers, D covariates.
"""

from typing import Any

import torch
from torch import Tensor

from icl.tasks.law import Law, Model, RiskFunction
from icl.tasks.linear_regression import is_linear_regression
from icl.theory.ahn.invariant_risk import InvariantRisk


def risk_on_s(model: Any, law: Law) -> RiskFunction | None:
    """Return the exact risk of the projection of any weights of this model on S; None if the law is another
    than the theorems', or the model none of theirs, or too deep."""
    family = model.parametrization
    if not family.sparse or model.activation != "identity" or not is_linear_regression(law):
        return None
    whitened_RDD = law.root_RDD.mT @ law.Sigma_w_RDD @ law.root_RDD
    isotropic = bool((whitened_RDD - torch.eye(law.dim, dtype=torch.float64)).abs().max() < 1e-9)
    centred = law.label_noise == 0 and not law.mean_RD.any() and not law.guesses
    if not (isotropic and centred and law.read_out == -1):
        return None
    with_b = family.with_b
    try:
        risks = {n: InvariantRisk(law.dim, n, family.layers, with_b) for n in set(law.context_R)}
    except ValueError:
        return None  # too deep for the exact polynomial

    def risk(model: Model) -> Tensor:
        each = zip(law.context_R, *(x_RL.tolist() for x_RL in scalars_of(model, law)), strict=True)
        values = [risks[n].value(a_L, beta_L[:-1] if with_b else ()) for n, a_L, beta_L in each]
        return torch.tensor(values, dtype=torch.float64)

    return risk


def scalars_of(model: Model, law: Any) -> tuple[Tensor, Tensor]:
    """Return a_RL and beta_RL of a sparse model: the nearest point of S."""
    A_RLDD, B_RLDD = model.parametrization.sparse_weights()
    if B_RLDD is None:
        return scalars_on_s(-A_RLDD, law.Sigma_RDD)
    full_RLDD = torch.cat([B_RLDD, torch.zeros_like(A_RLDD[:, :1])], 1)
    return scalars_on_s(A_RLDD, law.Sigma_RDD, full_RLDD)


def scalars_on_s(A_LDD: Tensor, Sigma: Tensor, B_LDD: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Nearest point of S in whitened coordinates: a_L and, with B given ((11)'s sign of A), beta_L = a_L b_L.

    Sigma^{1/2} A Sigma^{1/2} and Sigma^{-1/2} B Sigma^{1/2} are projected on the multiples of I. Leading
    axes allowed.
    """
    dim = Sigma.shape[-1]
    a_L = (A_LDD * Sigma.mT.unsqueeze(-3)).sum((-1, -2)) / dim
    if B_LDD is None:
        return a_L, a_L.new_zeros(a_L.shape)
    b_L = B_LDD.diagonal(dim1=-2, dim2=-1).mean(-1)
    return -a_L, -a_L * b_L
