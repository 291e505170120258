"""A lower bound for every single head, by branch and bound over b: no (b, a) has a risk below a level.

With R(X) = bound + |whiten(X) - g|^2 a head has the excess |D(b) a - g|^2 over the convex bound, D(b) linear
in b. The scale of b goes into a, so that b runs over the faces b_f = 1 of a cube, cut into boxes
b = c + sum_i t_i r_i e_i, |t_i| <= 1. On a box write a = a_0 + sum_i t_i a_i + L u, with a_0 the best keys at
the centre, a_i their derivative and D(c) L orthonormal. Then D(b) a - g = w(t) + Y(t) u, w quadratic and Y
linear in t, and over all u

    |w + Y u|^2 >= |w|^2 - |Y^T w|^2 / (least eigenvalue of Y^T Y).

|w|^2 is p_0 + p_1 t + t^T H t plus a cubic plus a square; Y^T w has no terms of order 0 and 1, by the choice
of a_0 and a_i. As |t_i| <= 1, sums of norms of coefficients, times |t|^2, bound what is beyond H. The
remaining quadratic is bounded below on the box. The error is of third order in the size of the box, so that
around a strict minimum the number of boxes grows with log(1 / gap) only.

Every choice above may be rounded, since the inequality holds for any a_0, a_i and L; what is computed from
them is rounded by at most `slack`, 2^-52 times operations times the sum of the sizes of all terms.

N boxes, P token width, K query entries, E entries of a_KP, X coordinates of the whitened form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from icl.theory.quadratic import EPSILON, QuadraticRisk

Array = NDArray[np.float64]

AT_ONCE = 4000  # boxes
LEAST = 0.05  # of the eigenvalues of Y^T Y, 1 at the centre: below it a box is cut


class HeadsBelow(NamedTuple):
    """What branch and bound came to: whether all heads are above the level, the boxes bounded, and whether a
    head below it was met, which refutes; neither where the boxes did not suffice."""

    proved: bool
    boxes: int
    refuted: bool


class _Box(NamedTuple):
    low_N: Array  # lower bound of the excess over the level
    centre_N: Array  # its value at the centre
    slack_N: Array


def heads_below(
    risk: QuadraticRisk, keys: int, level: float, most: int, free_P: Tensor | None = None
) -> HeadsBelow:
    """Search all heads with `keys` rows a_k for one with a risk below `level`, with at most so many boxes.

    `free_P` masks which entries of b may differ from zero; None is all.
    """
    design_PXE, goal_X, bound = risk.single_head_design(keys)
    if free_P is not None:
        design_PXE = design_PXE[free_P.numpy()]
    excess, P = level - bound, len(design_PXE)
    centre_NP, size_NP = np.eye(P), 1 - np.eye(P)
    boxes = 0
    while len(centre_NP):
        if boxes + len(centre_NP) > most:
            return HeadsBelow(False, boxes, False)
        boxes += len(centre_NP)
        parts = [
            _bound(design_PXE, goal_X, excess, centre_NP[i : i + AT_ONCE], size_NP[i : i + AT_ONCE])
            for i in range(0, len(centre_NP), AT_ONCE)
        ]
        low_N, value_N, slack_N = (np.concatenate(column) for column in zip(*parts, strict=True))
        if (value_N < -slack_N).any():
            return HeadsBelow(False, boxes, True)
        cut = ~(low_N > 0)
        centre_NP, size_NP = _halves(centre_NP[cut], size_NP[cut])
    return HeadsBelow(True, boxes, False)


def _halves(centre_NP: Array, size_NP: Array) -> tuple[Array, Array]:
    """Cut every box across its longest side. The corners are binary fractions: nothing is lost between."""
    longest = np.eye(size_NP.shape[1])[size_NP.argmax(1)]
    shift = longest * size_NP / 2
    return np.concatenate([centre_NP - shift, centre_NP + shift]), np.concatenate([size_NP - shift] * 2)


def _bound(design_PXE: Array, goal_X: Array, excess: float, centre_NP: Array, size_NP: Array) -> _Box:
    """Bound |D(b) a - g|^2 - excess from below over every a and every b of each box."""
    P, X, E = design_PXE.shape
    D_NXE = np.einsum("np,pxe->nxe", centre_NP, design_PXE)
    q_NXE, triangle_NEE = np.linalg.qr(D_NXE)
    L_NEE = np.linalg.inv(triangle_NEE)
    D_NPXE = size_NP[:, :, None, None] * design_PXE
    Y_NXE, Y_NPXE = D_NXE @ L_NEE, D_NPXE @ L_NEE[:, None]
    # Keys are a = L z: z_0 the best ones at the centre, z_i their derivative.
    z_NE = np.einsum("nxe,x->ne", q_NXE, goal_X)
    w_NX = np.einsum("nxe,ne->nx", Y_NXE, z_NE) - goal_X
    moved_NPX = np.einsum("npxe,ne->npx", Y_NPXE, z_NE)
    z_NPE = -np.einsum("nxe,npx->npe", q_NXE, moved_NPX) - np.einsum("npxe,nx->npe", Y_NPXE, w_NX)
    w_NPX = moved_NPX + np.einsum("nxe,npe->npx", Y_NXE, z_NPE)
    w_NPPX = np.einsum("nixe,nje->nijx", Y_NPXE, z_NPE)
    w_NPPX = (w_NPPX + w_NPPX.transpose(0, 2, 1, 3)) / 2

    value_N = np.square(w_NX).sum(-1) - excess
    slope_NP = 2 * np.einsum("nx,npx->np", w_NX, w_NPX)
    H_NPP = np.einsum("nix,njx->nij", w_NPX, w_NPX) + 2 * np.einsum("nx,nijx->nij", w_NX, w_NPPX)
    cubic_N = 2 * np.abs(np.einsum("nix,njkx->nijk", w_NPX, w_NPPX)).sum((1, 2, 3))

    # Y^T w by orders; 0 and 1 are rounding.
    first_NPE = np.einsum("nxe,nix->nie", Y_NXE, w_NPX) + np.einsum("nixe,nx->nie", Y_NPXE, w_NX)
    second_NPPE = np.einsum("nxe,nijx->nije", Y_NXE, w_NPPX) + np.einsum("nixe,njx->nije", Y_NPXE, w_NPX)
    second_NPPE = (second_NPPE + second_NPPE.transpose(0, 2, 1, 3)) / 2
    third_NPPPE = np.einsum("nixe,njkx->nijke", Y_NPXE, w_NPPX)
    rest_N = _norms(np.einsum("nxe,nx->ne", Y_NXE, w_NX)[:, None]) + _norms(first_NPE)
    cross_N = _norms(second_NPPE) + _norms(third_NPPPE)

    operations = 8 * (P + E + X)
    L_N, key_N, keys_NP = (np.linalg.norm(z, axis=-1) for z in (L_NEE.reshape(-1, E * E), z_NE, z_NPE))
    D_N, sides_NP = np.linalg.norm(D_NXE, axis=(1, 2)), np.linalg.norm(D_NPXE, axis=(2, 3))
    design_N = (D_N + sides_NP.sum(1)) * L_N  # of Y(t), with all terms positive
    size_N = np.linalg.norm(goal_X) + design_N * (key_N + keys_NP.sum(1))  # of w(t)
    rounding = EPSILON * operations
    least_N = _least_eigenvalue(Y_NXE, Y_NPXE) - rounding * design_N**2
    known_N = least_N > LEAST
    least_N = np.where(known_N, least_N, 1.0)
    rest_N, cross_N = rest_N + rounding * design_N * size_N, cross_N + rounding * design_N * size_N
    slack_N = rounding * size_N**2
    # (r + c m)^2 <= r^2 + (c^2 + 2 r c) |t|^2 with m = max t_i^2 <= 1
    beyond_N = cubic_N + (cross_N**2 + 2 * rest_N * cross_N) / least_N
    low_N = value_N - rest_N**2 / least_N - 2 * slack_N
    H_NPP = H_NPP - (beyond_N + slack_N)[:, None, None] * np.eye(P)
    free_NP = size_NP > 0
    low_N = low_N + np.maximum(
        _least_quadratic(slope_NP, H_NPP, free_NP), _least_convex(slope_NP, H_NPP, free_NP, slack_N)
    )
    return _Box(np.where(known_N, low_N, -np.inf), value_N, slack_N)


def _norms(coefficients: Array) -> Array:
    """Return the sum of the lengths of all coefficients, vectors along the last axis."""
    return np.linalg.norm(coefficients, axis=-1).reshape(len(coefficients), -1).sum(1)


def _least_eigenvalue(Y_NXE: Array, Y_NPXE: Array) -> Array:
    """Bound the least eigenvalue of Y(t)^T Y(t) from below on each box: that at the centre less the linear
    terms; the quadratic ones are a square."""
    cross_NPEE = np.einsum("nxe,nixf->nief", Y_NXE, Y_NPXE)
    linear_NP = np.abs(np.linalg.eigvalsh(cross_NPEE + cross_NPEE.transpose(0, 1, 3, 2))).max(-1)
    least_N = np.linalg.eigvalsh(Y_NXE.transpose(0, 2, 1) @ Y_NXE)[:, 0]
    return least_N - linear_NP.sum(1)


def _least_quadratic(slope_NP: Array, H_NPP: Array, free_NP: NDArray[np.bool_]) -> Array:
    """Bound p t + t^T H t from below over |t_i| <= 1, entry by entry."""
    diagonal_NP = np.einsum("nii->ni", H_NPP)
    inside = diagonal_NP > np.abs(slope_NP) / 2
    each_NP = np.where(
        inside, -(slope_NP**2) / np.where(inside, 4 * diagonal_NP, 1.0), diagonal_NP - np.abs(slope_NP)
    )
    pairs_N = np.abs(H_NPP).sum((1, 2)) - np.abs(diagonal_NP).sum(1)
    return np.where(free_NP, each_NP, 0).sum(1) - pairs_N


def _least_convex(slope_NP: Array, H_NPP: Array, free_NP: NDArray[np.bool_], slack_N: Array) -> Array:
    """Return the least value of p t + t^T H t over all t, where H is positive definite; else -inf."""
    both_NPP = free_NP[:, :, None] & free_NP[:, None]
    values_NP, axes_NPP = np.linalg.eigh(np.where(both_NPP, H_NPP, np.eye(H_NPP.shape[1])))
    along_NP = np.abs(np.einsum("nij,ni->nj", axes_NPP, slope_NP)) + slack_N[:, None]
    convex_N = values_NP[:, 0] > 0
    low_N = -(along_NP**2 / np.where(convex_N[:, None], 4 * values_NP, 1.0)).sum(1)
    return np.where(convex_N, low_N, -np.inf)
