"""Least squares of minimum norm, and ridge.

R replicas, B prompts, N context, D covariates.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from icl.algorithms.coordinates import cholesky, moments, per_replica, whitening
from icl.errors import InputError, real, whole
from icl.tasks.prompts import GramPrompt, TokenPrompt


class LeastSquares:
    """The solution of least norm |w|, or with `Sigma_RDD` of least |Sigma^{1/2} w|: whitened coordinates.

    They differ for N < D only. With noiseless labels and w ~ N(0, Sigma^{-1}) the whitened one is the
    posterior mean and its risk is max(D - N, 0). `context` is N, or each replica's own: a Gram matrix does
    not carry it.
    """

    def __init__(self, context: int | Sequence[int], Sigma_RDD: Tensor | None = None) -> None:
        self.context_R = contexts_of(context)
        self.root_RDD = whitening(Sigma_RDD)

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        S_RBDD, g_RBD, x_RBD = moments(prompt, self.root_RDD)
        D = x_RBD.shape[-1]
        eigenvalues_RBD, U_RBDD = _spectra(S_RBDD)
        # The rank is known: beyond min(N, D) an eigenvalue is rounding, and its inverse would be noise. The
        # cutoff is for contexts with dependent tokens.
        rank_R = per_replica("context", self.context_R, len(x_RBD)).clamp(max=D)
        cutoff_RB1 = D * torch.finfo(torch.float64).eps * eigenvalues_RBD[..., -1:]
        kept_RBD = (torch.arange(D) >= D - rank_R[:, None, None]) & (eigenvalues_RBD > cutoff_RB1)
        inverse_RBD = torch.where(kept_RBD, 1 / eigenvalues_RBD, 0.0)
        g_RB1D, x_RB1D = g_RBD[:, :, None] @ U_RBDD, x_RBD[:, :, None] @ U_RBDD
        return (g_RB1D * inverse_RBD[:, :, None] * x_RB1D).sum((-1, -2))


class RidgeRegression:
    """The minimum of (1/2N) sum_i (<w, x_i> - y_i)^2 + (lam/2) |w - mean|^2.

    With `Sigma_w_RDD` the norm is that of Sigma_w^{-1}. `lam` is one positive number, or each replica's own.
    """

    def __init__(
        self,
        lam: float | Sequence[float],
        Sigma_w_RDD: Tensor | None = None,
        mean_RD: Tensor | None = None,
    ) -> None:
        entries = list(lam) if isinstance(lam, Sequence) else [lam]
        checked = [real("algorithm.lam", entry, 0, open_low=True) for entry in entries]
        self.lam_R = torch.tensor(checked, dtype=torch.float64)
        self.root_RDD = None if Sigma_w_RDD is None else cholesky("algorithm.Sigma_w", Sigma_w_RDD)
        if mean_RD is not None and mean_RD.ndim != 2:
            raise InputError(f"algorithm.mean: has shape {tuple(mean_RD.shape)}, must have (R, D)")
        self.mean_RD = mean_RD

    @classmethod
    def bayes(
        cls,
        label_noise: float,
        context: int | Sequence[int],
        Sigma_w_RDD: Tensor | None = None,
        mean_RD: Tensor | None = None,
    ) -> Self:
        """Return the posterior mean for w ~ N(mean, Sigma_w) and labels with noise of variance `label_noise`
        > 0.

        Without noise it is `LeastSquares` with Sigma = Sigma_w^{-1} (and mean zero).
        """
        noise = real("algorithm.label_noise", label_noise, 0, open_low=True)
        return cls([noise / n for n in contexts_of(context).tolist()], Sigma_w_RDD, mean_RD)

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        S_RBDD, g_RBD, x_RBD = moments(prompt, self.root_RDD)
        R, _, D = x_RBD.shape
        lam_R111 = per_replica("lam", self.lam_R, R)[:, None, None, None]
        mean_R1D1 = self._mean_in_coordinates(R, D)
        residual_RBD1 = g_RBD[..., None] - S_RBDD @ mean_R1D1
        penalised_RBDD = S_RBDD + lam_R111 * torch.eye(D, dtype=torch.float64)
        w_RBD1 = mean_R1D1 + torch.linalg.solve(penalised_RBDD, residual_RBD1)
        return (w_RBD1[..., 0] * x_RBD).sum(-1)

    def _mean_in_coordinates(self, R: int, D: int) -> Tensor:
        if self.mean_RD is None:
            return torch.zeros(R, 1, D, 1, dtype=torch.float64)
        if self.mean_RD.shape[-1] != D:
            raise InputError(
                f"algorithm.mean: has {self.mean_RD.shape[-1]} entries, prompts have {D} covariates"
            )
        mean_RD1 = per_replica("mean", self.mean_RD.to(torch.float64), R)[..., None]
        if self.root_RDD is not None:
            mean_RD1 = torch.linalg.solve(self.root_RDD, mean_RD1)
        return mean_RD1[:, None]


def _spectra(S_RBDD: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and -vectors; of prompts that follow one another on the same context, once."""
    new_B = (S_RBDD[:, 1:] != S_RBDD[:, :-1]).flatten(2).any(-1).any(0)
    at_B = torch.cat([torch.zeros(1, dtype=torch.long), new_B.cumsum(0)])
    first_B = torch.cat([torch.ones(1, dtype=torch.bool), new_B])
    eigenvalues_RBD, U_RBDD = torch.linalg.eigh(S_RBDD[:, first_B])
    return eigenvalues_RBD[:, at_B], U_RBDD[:, at_B]


def contexts_of(context: int | Sequence[int]) -> Tensor:
    """Return N of each replica, or the one of all."""
    entries = list(context) if isinstance(context, Sequence) else [context]
    return torch.tensor([whole("algorithm.context", n, 1) for n in entries])
