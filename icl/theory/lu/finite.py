"""lu: the risk of reduced linear attention at any size: the published formula, and the mean over tokens.

x ~ N(0, I/d), y = <x, w> + noise of variance rho, l examples. The model predicts x^T Gamma h with the
features h = [(d/l) sum_i y_i x_i ; (1/l) sum_i y_i^2], Gamma a d x (d+1) matrix. A law of tasks is a list of
them, all equally likely, or "sphere", uniform on |w|^2 = d, or "gaussian", N(0, I).
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import prod
from typing import Any

from flint import arb, arb_mat, fmpq, fmpq_mat, fmpq_mpoly, fmpq_mpoly_ctx

from icl.theory.rationals import ZERO, identity, trace

Tasks = Sequence[Sequence[fmpq]] | str
Matrix = Any  # fmpq_mat, or arb_mat


def task_moments(tasks: Tasks, dim: int, rho: fmpq, kind: type = fmpq_mat) -> tuple[Matrix, Any, Any, Matrix]:
    """Return E w w^T, and the means of s, s^2 and s w, where s = |w|^2/d + rho is the variance of a label."""
    if isinstance(tasks, str):
        spread = fmpq(0 if tasks == "sphere" else 2, dim)
        return kind(identity(dim)), 1 + rho, (1 + rho) ** 2 + spread, kind(dim, 1)
    k = len(tasks)
    w_KD = kind(k, dim, [x for w in tasks for x in w])
    s = [sum((x * x for x in w), ZERO) / dim + rho for w in tasks]
    along = w_KD.transpose() * kind(k, 1, s)
    return w_KD.transpose() * w_KD / k, sum(s, ZERO) / k, sum((x * x for x in s), ZERO) / k, along / k


def form(
    tasks: Tasks, dim: int, context: int, rho: fmpq, kind: type = fmpq_mat
) -> tuple[Any, Matrix, Matrix]:
    """Return E s, A = E h w^T and B = E h h^T of the risk E s + tr(Gamma B Gamma^T)/d - 2 tr(Gamma A)/d."""
    d, each = dim, fmpq(1, context)
    R, s, s_squared, sw = task_moments(tasks, d, rho, kind)
    A, B = kind(d + 1, d), kind(d + 1, d + 1)
    for i in range(d):
        A[d, i] = sw[i, 0]
        B[i, d] = B[d, i] = (1 + 2 * each) * sw[i, 0]
        for j in range(d):
            A[i, j] = R[i, j]
            B[i, j] = (1 + each) * R[i, j] + (each * d * s if i == j else 0)
    B[d, d] = (1 + 2 * each) * s_squared
    return s, A, B


def risk(Gamma: Matrix, s: Any, A: Matrix, B: Matrix) -> Any:
    """Return the risk of weights, by the formula."""
    return s + (trace(Gamma * B * Gamma.transpose()) - 2 * trace(Gamma * A)) / Gamma.nrows()


def gap_of_best(tasks: Sequence[Sequence[fmpq]], dim: int, context: int, rho: fmpq) -> arb:
    """Return e_ICL - e_IDG of the weights of least risk on given tasks, Gamma B = A^T."""
    old = form(tasks, dim, context, rho, arb_mat)
    Gamma = old[2].solve(old[1]).transpose()
    return risk(Gamma, *form("sphere", dim, context, rho, arb_mat)) - risk(Gamma, *old)


def distance_from_plane(tasks: Sequence[Sequence[fmpq]], dim: int) -> arb:
    """Return the mean of |w - plane|^2 / d over w on |w|^2 = d, for the plane through given tasks."""
    k = len(tasks)
    if k > dim:
        return arb(0)
    mean = [sum((w[i] for w in tasks), ZERO) / k for i in range(dim)]
    off = arb_mat(dim, 1, mean)
    if k > 1:
        across = arb_mat(dim, k - 1, [tasks[j][i] - tasks[-1][i] for i in range(dim) for j in range(k - 1)])
        off -= across * (across.transpose() * across).solve(across.transpose() * off)
    return 1 - fmpq(k - 1, dim) + sum((x * x for x in off.entries()), arb(0)) / dim


def risk_of_tokens(Gamma: fmpq_mat, tasks: Tasks, context: int, rho: fmpq) -> fmpq:
    """Return the mean of (y - x^T Gamma h)^2 monomial by monomial: in x, the noise and w."""
    d = Gamma.nrows()
    names = [*(f"x{i}" for i in range(d)), "noise", *(f"w{i}" for i in range(d))]
    ring = fmpq_mpoly_ctx.get(names, "degrevlex")
    variables = ring.gens()
    x, noise, w = variables[:d], variables[d], variables[d + 1 :]
    y = sum((a * b for a, b in zip(x, w, strict=True)), noise)
    variances = [fmpq(1, d)] * d + [rho]
    once = [d * y * entry for entry in x] + [y * y]  # an example's part of h
    mean = [_over_tokens(u, variances) for u in once]
    error = [sum((Gamma[i, j] * mean[j] for j in range(d + 1)), -w[i]) for i in range(d)]
    loss = sum((entry * entry for entry in error), 0 * noise) / d + rho
    gram = Gamma.transpose() * Gamma
    for i, j in combinations_with_replacement(range(d + 1), 2):
        spread = _over_tokens(once[i] * once[j], variances) - mean[i] * mean[j]
        loss += gram[i, j] * (1 if i == j else 2) * spread / (d * context)
    return _over_tasks(loss, tasks, d)


def _over_tokens(polynomial: fmpq_mpoly, variances: Sequence[fmpq]) -> fmpq_mpoly:
    """Replace each monomial of independent Gaussians by its mean."""
    kept: dict[tuple[int, ...], fmpq] = {}
    for powers, factor in polynomial.to_dict().items():
        tokens, rest = powers[: len(variances)], powers[len(variances) :]
        if any(k % 2 for k in tokens):
            continue
        mean = prod(
            (v ** (k // 2) * _double(k - 1) for v, k in zip(variances, tokens, strict=True)), start=fmpq(1)
        )
        key = (0,) * len(variances) + tuple(rest)
        kept[key] = kept.get(key, ZERO) + factor * mean
    return polynomial.context().from_dict(kept)


def _over_tasks(loss: fmpq_mpoly, tasks: Tasks, d: int) -> fmpq:
    """Return the mean of a polynomial in w over the law of the tasks."""
    if not isinstance(tasks, str):
        values = (loss(*[ZERO] * (d + 1), *w) for w in tasks)
        return sum((fmpq(value) for value in values), ZERO) / len(tasks)
    total = ZERO
    for powers, factor in loss.to_dict().items():
        in_w = powers[d + 1 :]
        if any(k % 2 for k in in_w):
            continue
        half = sum(in_w) // 2
        radius = fmpq(d**half, prod(d + 2 * i for i in range(half))) if tasks == "sphere" else 1
        total += factor * prod(_double(k - 1) for k in in_w) * radius  # |w|^2 is d, not chi^2 of d degrees
    return total


def _double(k: int) -> int:
    """Return 1 * 3 * ... * k, the mean of the (k + 1)th power of a standard Gaussian; 1 for k = -1."""
    return prod(range(1, k + 1, 2))
