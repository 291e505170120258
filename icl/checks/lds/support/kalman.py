"""The Kalman filter against conditioning, by the covariances of drawn systems. Q systems, T observations."""

from __future__ import annotations

import torch

from icl.algorithms import KalmanFilter
from icl.checks.numbers import Numbers, tried
from icl.tasks import DynamicalSystemLaw
from icl.tasks.dynamical_system import Systems
from icl.theory.dynamical_system import covariances_of_systems
from icl.theory.quadratic import EPSILON

FILTERED = 40  # systems whose Kalman filter is written out


def compare_kalman(law: DynamicalSystemLaw, systems: Systems) -> Numbers:
    """Compare the filter with conditioning on y_1 .. y_(T-1), by its weights on them and by its variance; and
    the risk with sigma_v for sigma_v^2, as (2) prints it, over that of the filter."""
    T, few = law.length, slice(0, FILTERED)
    A_QDD, c_QD = systems.A_RBDD[0, few], systems.c_RBD[0, few]
    C_QTT = covariances_of_systems(
        A_QDD, c_QD, law.Sigma_w_RDD[0], law.observation_noise, law.initial_variance, T
    )
    Q, eye_TT = len(C_QTT), torch.eye(T, dtype=torch.float64)
    errors_QT, variance_Q = [], torch.zeros(Q)
    for noise in (law.observation_noise**0.5, law.observation_noise):
        # Linear in y: its answers to the unit sequences, system by system, are its weights.
        A_RBDD, c_RBD = A_QDD.repeat_interleave(T, 0)[None], c_QD.repeat_interleave(T, 0)[None]
        kalman = KalmanFilter(A_RBDD, c_RBD, law.Sigma_w_RDD, noise, law.initial_variance)
        mean_RBT, variance_RBT = kalman.forecasts(eye_TT.repeat(Q, 1)[None])
        errors_QT.append(eye_TT[-1] - mean_RBT[0, :, -1].view(Q, T))
        variance_Q = variance_RBT[0, ::T, -1]
    printed_Q, right_Q = (((off_QT[:, None] @ C_QTT)[:, 0] * off_QT).sum(1) for off_QT in errors_QT)
    past_QXX, cross_QX = C_QTT[:, :-1, :-1], C_QTT[:, :-1, -1]
    least_Q = C_QTT[:, -1, -1] - (cross_QX * torch.linalg.solve(past_QXX, cross_QX)).sum(1)
    size_Q = C_QTT[:, -1, -1] * torch.linalg.cond(past_QXX)
    off_Q = torch.maximum((right_Q - least_Q).abs(), (variance_Q - least_Q).abs()) / size_Q
    source = "rounding: 2^-52 times 8 T d, as a share of E[y_T^2] and the condition of the past's covariance"
    error = (
        tried(kalman_error=float(off_Q.max()))
        .means("largest difference of the Kalman filter's risk from that of conditioning, relative")
        .at_most(EPSILON * 8 * T * law.states, source)
    )
    return Numbers(
        [
            *error,
            *tried(kalman_ratio_printed_2=float(printed_Q.mean() / right_Q.mean())).means(
                "risk of the filter (2) as printed over the risk of the Kalman filter"
            ),
        ]
    )
