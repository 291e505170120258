"""Quantities of a finished run of the sparse families: its projection on S, its risk.

R replicas, T stored steps, L layers, D covariates.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.runs.record import RunRecord
from icl.stats import stratified_error
from icl.tasks.ahn.risk_on_s import scalars_on_s
from icl.tasks.distances import distance_to_identity, inverse_symmetric_root, symmetric_root
from icl.tasks.integrated import Tilted
from icl.tasks.law import Draw, Estimator

BATCH = 20_000  # prompts of the paper's batch
MOST_BATCHES = 10**5  # hours


def whiten(run: RunRecord) -> np.ndarray:
    """Sigma^{1/2} A_l Sigma^{1/2} of the final weights."""
    root_R1DD = symmetric_root(torch.from_numpy(run.Sigma))[:, None]
    return (root_R1DD @ torch.from_numpy(run.A) @ root_R1DD).numpy()


def distances_of_inverse(run: RunRecord) -> np.ndarray:
    """Dist(Sigma^{-1}, I): where the distance of a plain A_l to the identity ends on S."""
    root_RDD = inverse_symmetric_root(torch.from_numpy(run.Sigma))
    return distance_to_identity(root_RDD @ root_RDD).numpy()


def projection_scalars(run: RunRecord) -> tuple[np.ndarray, np.ndarray]:
    """a_RL and beta_R(L-1) of the final weights' projection on S; beta is empty without B."""
    Sigma_RDD, A_RLDD = torch.from_numpy(run.Sigma), torch.from_numpy(run.A)
    if "B" not in run.weights:
        return scalars_on_s(A_RLDD, Sigma_RDD)[0].numpy(), np.zeros((len(A_RLDD), 0))
    B_RLDD = torch.cat([torch.from_numpy(run.B), torch.zeros_like(A_RLDD[:, :1])], dim=1)
    a_RL, beta_RL = scalars_on_s(A_RLDD, Sigma_RDD, B_RLDD)
    return a_RL.numpy(), beta_RL[:, :-1].numpy()


def project_on_s(run: RunRecord) -> dict[str, np.ndarray]:
    """Return the point of S that `projection_scalars` stand for: A_l = -a_l Sigma^{-1}, B_l = b_l I in
    (11)."""
    a_RL, beta_RL = map(torch.from_numpy, projection_scalars(run))
    inverse_RDD = torch.linalg.inv(torch.from_numpy(run.Sigma))
    identity_DD = torch.eye(inverse_RDD.shape[-1], dtype=torch.float64)
    b_RL = beta_RL / a_RL[:, :-1]
    A_RLDD = -a_RL[..., None, None] * inverse_RDD[:, None]
    return {"A": A_RLDD.numpy(), "B": (b_RL[..., None, None] * identity_DD).numpy()}


def mean_risk(estimator: Estimator, model: Any, draw: Draw) -> Tensor:
    """Return the risk over a draw, piece by piece: 20,000 prompts a seed at once take a gigabyte."""
    return torch.stack([share * estimator.risk(model, piece) for share, piece in estimator.pieces(draw)]).sum(
        0
    )


def sampled_risk(
    tilted: Tilted, model: Any, streams: list[np.random.Generator], batches: int
) -> dict[str, np.ndarray]:
    """Return the risk over `batches` fresh weighted draws, which show its tail, with the standard error."""
    means, variances = [], []
    for _ in range(batches):
        pieces = tilted.pieces(tilted.draw(streams, BATCH))
        terms_RB = torch.cat([tilted.terms(model, piece) for _, piece in pieces], dim=1).numpy()
        means.append(terms_RB.mean(1))
        components = zip(terms_RB, tilted.inflations_R, strict=True)
        variances.append([stratified_error(terms_B, len(c)) ** 2 for terms_B, c in components])
    return {
        "risk_R": np.mean(means, axis=0),
        "risk_stderr_R": np.sqrt(np.mean(variances, axis=0) / batches),
    }
