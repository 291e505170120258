"""The steady state of a system's Kalman filter, and what eq. (3) leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpq_mat

from icl.theory.lds.systems import covariance_limit
from icl.theory.rationals import column, dot, matrix

STEPS, DIGITS = 2000, 10**12  # of Riccati's recursion; of gains


@dataclass(frozen=True)
class Predictor:
    """x^_{t+1} = A x^_t + K e_t, y_t = c.x^_t + e_t: with any gain K, of a system with its noise."""

    A: fmpq_mat
    c: fmpq_mat
    gain: fmpq_mat
    process: fmpq_mat
    noise: fmpq

    @cached_property
    def closed(self) -> fmpq_mat:
        """F = A - K c^T."""
        return self.A - self.gain * self.c.transpose()

    @cached_property
    def variance(self) -> fmpq:
        """Return that of e_t in the steady state."""
        driven = self.process + self.noise * self.gain * self.gain.transpose()
        state = covariance_limit(self.closed, driven)
        return (self.c.transpose() * state * self.c)[0, 0] + self.noise

    def terms_of_3(self, y: Sequence[fmpq], first: fmpq_mat, gain: fmpq_mat) -> list[fmpq]:
        """Return the terms of eq. (3) from the state `first` on, with this gain; the second one last."""
        closed, row, terms = self.A - gain * self.c.transpose(), self.c.transpose(), []
        for value in reversed(y):
            terms.append((row * gain)[0, 0] * value)
            row = row * closed
        return [*terms, (row * first)[0, 0]]

    def run(self, y: Sequence[fmpq], first: fmpq_mat) -> fmpq:
        """Return the prediction after y, step by step."""
        state = first
        for value in y:
            state = self.A * state + self.gain * (value - dot(self.c, state))
        return dot(self.c, state)

    def lags(self, count: int) -> list[fmpq]:
        """Return the stationary covariances of y."""
        row, state, out = self.c.transpose(), covariance_limit(self.A, self.process), []
        for lag in range(count):
            out.append((row * state * self.c)[0, 0] + self.noise * (lag == 0))
            row = row * self.A
        return out


def filter_gain(A: fmpq_mat, c: fmpq_mat, process: fmpq_mat, noise: float) -> fmpq_mat:
    """Return eq. (2)'s k in the steady state, by Riccati's recursion in floats, rounded; 0 without noise."""
    rows, row, Q = (np.array([[int(e.p) / int(e.q) for e in line] for line in x.tolist()])
                    for x in (A, c.transpose(), process))  # fmt: skip
    P, k = Q, 0 * row.T
    for _ in range(STEPS):
        variance = (row @ P @ row.T)[0, 0] + noise
        k = P @ row.T / variance if variance > 0 else 0 * row.T
        before, P = P, rows @ (P - k @ (row @ P)) @ rows.T + Q
        P = (P + P.T) / 2
        if np.abs(P - before).max() <= 1e-16 * np.abs(P).max():
            break
    return column(fmpq(round(float(e) * DIGITS), DIGITS) for e in k[:, 0])


def radius(x: fmpq_mat) -> arb:
    """Return the largest absolute value of an eigenvalue."""
    roots: list[Any] = x.charpoly().complex_roots()
    return reduce(lambda one, other: one.max(other), (abs(root) for root, _ in roots))


def least_errors(lags: Sequence[fmpq]) -> list[fmpq]:
    """Return the variance of the best AR(s) predictor's error, s = 1, 2, .., by the covariances of y."""
    dets = [
        matrix([lags[abs(i - j)] for j in range(s)] for i in range(s)).det() for s in range(1, len(lags) + 1)
    ]
    return [after / before if before else fmpq(0) for before, after in pairwise(dets)]
