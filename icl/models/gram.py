"""Linear attention on Gram matrices: what a stack does to a prompt, at a cost independent of its length.

R replicas, L layers, H heads, P token width, D covariates, E width of the vector u behind a token (icl.tasks),
B prompts (last axis), K query columns. One layer with T = sum_h P_h G Q_h moves q <- (I+T) q, G <- (I+T) G (I+T)^T.

The sparse families are in the sign of eq. (11): P = [[B, 0], [0, 1]], Q = [[A, 0], [0, 0]]; eq. (8) is -A without B.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.models.batched import from_left, from_right, product


def stack_forward(P_RLHPP: Tensor, Q_RLHPP: Tensor, gram_RPPB: Tensor, query_RPKB: Tensor) -> Tensor:
    """The query columns after every layer of any linear stack."""
    layers, heads = P_RLHPP.shape[1:3]
    for layer in range(layers):
        T_RPPB = torch.zeros_like(gram_RPPB)
        for h in range(heads):
            T_RPPB = T_RPPB + from_right(from_left(P_RLHPP[:, layer, h], gram_RPPB), Q_RLHPP[:, layer, h])
        query_RPKB = query_RPKB + product(T_RPPB, query_RPKB)
        if layer + 1 < layers:
            gram_RPPB = gram_RPPB + product(T_RPPB, gram_RPPB)
            gram_RPPB = gram_RPPB + product(gram_RPPB, T_RPPB.transpose(1, 2))
    return query_RPKB


def sparse_forward(A_RLDD: Tensor, B_RLDD: Tensor | None, gram_RPPB: Tensor, query_RPB: Tensor) -> Tensor:
    """Last entry of the query after a sparse stack, eq. (11); layers beyond B's move no covariates."""
    D = A_RLDD.shape[-1]
    Gxx_RDDB, gyx_R1DB = gram_RPPB[:, :D, :D], gram_RPPB[:, D:, :D]
    x_RD1B, y_RB = query_RPB[:, :D, None], query_RPB[:, D]
    layers = A_RLDD.shape[1]
    for layer in range(layers):
        row_R1DB = from_right(gyx_R1DB, A_RLDD[:, layer])
        y_RB = y_RB + (row_R1DB[:, 0] * x_RD1B[:, :, 0]).sum(1)
        if layer + 1 == layers:
            break
        gyx_R1DB = gyx_R1DB + product(row_R1DB, Gxx_RDDB)
        if B_RLDD is not None:
            move_RDDB = from_right(from_left(B_RLDD[:, layer], Gxx_RDDB), A_RLDD[:, layer])
            x_RD1B = x_RD1B + product(move_RDDB, x_RD1B)
            gyx_R1DB = gyx_R1DB + product(gyx_R1DB, move_RDDB.transpose(1, 2))
            Gxx_RDDB = Gxx_RDDB + product(move_RDDB, Gxx_RDDB)
            Gxx_RDDB = Gxx_RDDB + product(Gxx_RDDB, move_RDDB.transpose(1, 2))
    return y_RB


def sparse_expected_risk(
    A_RLDD: Tensor, B_RLDD: Tensor | None, S_REEB: Tensor, label_root_REK: Tensor, query_root_RED: Tensor
) -> Tensor:
    """Risk given each S with the task and the query integrated out: (R, B), tr(V K X K^T).

    At layer l the tokens are x_l = M u and y_l = v^T K u (by Lemma 6 the query may start at its own label), so
    K <- K (I + S M^T A M), M <- (I + B M S M^T A) M. Only rows F^T K are carried, with V = F F^T the second moment
    of v; the query's second moment closes the product.
    """
    R, E, _, batch = S_REEB.shape
    A_RLEE = _padded(A_RLDD, E)
    layers = A_RLEE.shape[1]
    rows_RKE = label_root_REK.mT
    rows_RKEB = rows_RKE[..., None]
    M_REEB: Tensor | None = None  # the identity, until a B moves it
    for layer in range(layers):
        first = layer == 0
        rows_S_RKEB = from_left(rows_RKE, S_REEB) if first else product(rows_RKEB, S_REEB)
        if M_REEB is None:
            update_RKEB = from_right(rows_S_RKEB, A_RLEE[:, layer])
        else:
            AM_REEB = from_left(A_RLEE[:, layer], M_REEB)
            update_RKEB = product(product(rows_S_RKEB, M_REEB.transpose(1, 2)), AM_REEB)
        rows_RKEB = rows_RKEB + update_RKEB
        if B_RLDD is not None and layer + 1 < layers:
            B_REE = _padded(B_RLDD, E)[:, layer]
            if M_REEB is None:
                move_REEB = from_right(from_left(B_REE, S_REEB), A_RLEE[:, layer])
                M_REEB = torch.eye(E, dtype=S_REEB.dtype, device=S_REEB.device)[None, :, :, None] + move_REEB
            else:
                BMS_REEB = product(from_left(B_REE, M_REEB), S_REEB)
                M_REEB = M_REEB + product(product(BMS_REEB, M_REEB.transpose(1, 2)), AM_REEB)
    error_RKDB = from_right(rows_RKEB, query_root_RED)
    return error_RKDB.square().sum((1, 2))


def stack_expected_risk(
    P_RLHPP: Tensor, Q_RLHPP: Tensor, gram_RPPB: Tensor, w_RDB: Tensor, query_root_RDD: Tensor, read_out: int
) -> Tensor:
    """Risk of any linear stack given each prompt's G and w, the query integrated out: (R, B)."""
    R, P, _, batch = gram_RPPB.shape
    columns_RPD = torch.nn.functional.pad(query_root_RDD, (0, 0, 0, 1))
    columns_RPDB = columns_RPD[..., None].expand(-1, -1, -1, batch)
    out_RPDB = stack_forward(P_RLHPP, Q_RLHPP, gram_RPPB, columns_RPDB)
    target_RDB = query_root_RDD.mT @ w_RDB
    return (read_out * out_RPDB[:, -1] - target_RDB).square().sum(1)


def _padded(M_RLDD: Tensor, width: int) -> Tensor:
    extra = width - M_RLDD.shape[-1]
    return M_RLDD if extra == 0 else torch.nn.functional.pad(M_RLDD, (0, extra, 0, extra))
