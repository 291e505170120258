"""The Kalman filter of x_t = A x_{t-1} + w_t, y_t = c^T x_t + v_t, given every sequence's own system.

R replicas, B sequences, D states, T observations.
"""

import torch
from torch import Tensor

from icl.errors import InputError, real


class KalmanFilter:
    """E[y_t | y_1 .. y_{t-1}] for systems that are known: no predictor has a smaller squared error.

    `observation_noise` is sigma_v^2 (lds, eq. (2), prints sigma_v); x_0 ~ N(0, initial_variance I), one step
    before y_1.
    """

    def __init__(
        self,
        A_RBDD: Tensor,
        c_RBD: Tensor,
        Sigma_w_RDD: Tensor,
        observation_noise: float,
        initial_variance: float,
    ) -> None:
        R, B, D, _ = A_RBDD.shape
        if c_RBD.shape != (R, B, D) or Sigma_w_RDD.shape != (R, D, D):
            shapes = f"{tuple(c_RBD.shape)} and {tuple(Sigma_w_RDD.shape)}"
            raise InputError(f"algorithm.c, algorithm.Sigma_w: have shapes {shapes} for {R} x {B} systems")
        self.A_RBDD, self.c_RBD, self.Sigma_w_RBDD = A_RBDD, c_RBD, Sigma_w_RDD[:, None]
        self.noise = real("algorithm.observation_noise", observation_noise, 0, open_low=True)
        self.start = real("algorithm.initial_variance", initial_variance, 0)

    def forecasts(self, y_RBT: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, variance) of y_t given all before it, each (R, B, T); entry t does not read y_t."""
        x_RBD = torch.zeros_like(self.c_RBD)
        P_RBDD = self._first()
        means, variances = [], []
        for t in range(y_RBT.shape[-1]):
            gain_RBD, variance_RB = self._gain(P_RBDD)
            P_RBDD = self._predicted(self._updated(P_RBDD, gain_RBD))
            x_RBD = (self.A_RBDD @ x_RBD[..., None])[..., 0]
            mean_RB = (self.c_RBD * x_RBD).sum(-1)
            means.append(mean_RB)
            variances.append(variance_RB)
            x_RBD = x_RBD + gain_RBD * (y_RBT[..., t] - mean_RB)[..., None]
        return torch.stack(means, -1), torch.stack(variances, -1)

    def predict_last(self, y_RBT: Tensor) -> Tensor:
        """E[y_T | y_1 .. y_{T-1}], (R, B)."""
        return self.forecasts(y_RBT)[0][..., -1]

    def _first(self) -> Tensor:
        """Return the covariance of x_1."""
        return self._predicted(self.start * torch.eye(self.c_RBD.shape[-1], dtype=torch.float64))

    def _predicted(self, P_RBDD: Tensor) -> Tensor:
        return self.A_RBDD @ P_RBDD @ self.A_RBDD.mT + self.Sigma_w_RBDD

    def _gain(self, P_RBDD: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. (2)'s k, and the variance of y_t given the past."""
        seen_RBD = (P_RBDD @ self.c_RBD[..., None])[..., 0]
        variance_RB = (self.c_RBD * seen_RBD).sum(-1) + self.noise
        return seen_RBD / variance_RB[..., None], variance_RB

    def _updated(self, P_RBDD: Tensor, gain_RBD: Tensor) -> Tensor:
        """Joseph's form: stays symmetric and positive."""
        I_kc = (
            torch.eye(gain_RBD.shape[-1], dtype=torch.float64)
            - gain_RBD[..., :, None] * self.c_RBD[..., None, :]
        )
        return I_kc @ P_RBDD @ I_kc.mT + self.noise * gain_RBD[..., :, None] * gain_RBD[..., None, :]
