"""Flows of a matrix Gamma at P = infinity, and of one eigenvalue of it."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

from flint import arb, arb_series, fmpq, fmpq_mat

from icl.theory.rationals import diagonal, identity, trace


def rotated_errors(
    lam: Sequence[fmpq], layers: Sequence[fmpq_mat], rotations: Sequence[fmpq_mat]
) -> list[fmpq_mat]:
    """Return the product over the layers of I - O^T Gamma_l O Lambda at these O; Gamma_l / L in the paper."""
    Lambda, errors = diagonal(lam), []
    for O in rotations:  # noqa: E741
        errors.append(identity(len(lam)))
        for gamma in layers:
            errors[-1] -= O.transpose() * gamma * O * Lambda * errors[-1]
    return errors


def rotated_flow(
    lam: Sequence[fmpq], omega: Sequence[fmpq], flat: Sequence[fmpq_mat], along: fmpq_mat, group: Any
) -> fmpq:
    """Return Gamma' along E, minus half the slope of the mean over O of tr Omega N^T Lambda N, at layers that
    are multiples of I, which no O turns. The error N is linear in each layer."""
    L, zero = len(flat), fmpq_mat(len(lam), len(lam))
    error, change = rotated_errors(lam, flat, group[:1])[0], zero
    for k in range(L):
        moved = rotated_errors(lam, [*flat[:k], flat[k] + along / L, *flat[k + 1 :]], group)
        change += sum(moved, zero) / len(moved) - error
    return -trace(diagonal(omega) * error.transpose() * diagonal(lam) * change)


def signed_permutations(d: int) -> Iterator[fmpq_mat]:
    for order, signs in product(permutations(range(d)), product((1, -1), repeat=d)):
        entries = [sign * (j == k) for j, sign in zip(order, signs, strict=True) for k in range(d)]
        yield fmpq_mat(d, d, entries)


def fixed_residual(lam: fmpq, omega: fmpq, time: fmpq, factor: fmpq, layers: int = 0) -> arb:
    """Return gamma' over the right side of gamma' = omega lambda^2 (1 - gamma lambda / L)^(2L - 1) less 1,
    where 1 - gamma lambda / L = (1 + factor omega lambda^3 t)^(-1 / (2L - 2)); without layers at L =
    infinity, where gamma = ln(1 + factor omega lambda^3 t) / (2 lambda)."""
    grown = (factor * omega * lam**3 * arb_series([arb(time), 1], 2) + 1).log()
    if not layers:
        gamma = grown / (2 * lam)
        return gamma[1] / (omega * lam**2 * (-2 * lam * gamma[0]).exp()) - 1
    left = (grown / (2 - 2 * layers)).exp()
    return -layers / lam * left[1] / (omega * lam**2 * left[0] ** (2 * layers - 1)) - 1
