"""Linear attention on Gram matrices: what a stack does to a prompt, at a cost independent of its length.

R replicas, L layers, H heads, P token width, D covariates, E width of the vector u behind a token
(icl.tasks), B prompts (last axis), K query columns. One layer with T = sum_h P_h G Q_h moves q <- (I+T) q, G
<- (I+T) G (I+T)^T.

The sparse families are in the sign of eq. (11): P = [[B, 0], [0, 1]], Q = [[A, 0], [0, 0]]; eq. (8) is -A
without B.
"""

import torch
from torch import Tensor

from icl.models.batched import left_matmul, matmul, right_matmul, squared_norm


def stack_output(
    P_RLHPP: Tensor,
    Q_RLHPP: Tensor,
    gram_RPPB: Tensor,
    query_RPKB: Tensor,
    output_RP: Tensor | None = None,
) -> Tensor:
    """Return what any linear stack makes of the query columns: (R, K, B), their last entry after every layer.

    `output_RP` reads another combination of the entries. Of the last layer's T only that row is computed.
    """
    layers = P_RLHPP.shape[1]
    for layer in range(layers - 1):
        T_RPPB = _move(P_RLHPP[:, layer], Q_RLHPP[:, layer], gram_RPPB)
        query_RPKB = matmul(T_RPPB, query_RPKB, query_RPKB)
        gram_RPPB = matmul(T_RPPB, gram_RPPB, gram_RPPB)
        gram_RPPB = matmul(gram_RPPB, T_RPPB.transpose(1, 2), gram_RPPB)
    if output_RP is None:
        P_RH1P, direct_R1KB = P_RLHPP[:, -1, :, -1:], query_RPKB[:, -1:]
    else:
        P_RH1P = output_RP[:, None, None] @ P_RLHPP[:, -1]
        direct_R1KB = left_matmul(output_RP[:, None], query_RPKB)
    row_R1PB = _move(P_RH1P, Q_RLHPP[:, -1], gram_RPPB)
    return matmul(row_R1PB, query_RPKB, direct_R1KB)[:, 0]


def _move(P_RHIP: Tensor, Q_RHPP: Tensor, gram_RPPB: Tensor) -> Tensor:
    """Rows of T = sum_h P_h G Q_h."""
    R, H, rows, P = P_RHIP.shape
    first_RXPB = left_matmul(P_RHIP.reshape(R, H * rows, P), gram_RPPB)
    heads = first_RXPB.view(R, H, rows, *first_RXPB.shape[2:]).unbind(1)
    T_RIPB = right_matmul(heads[0], Q_RHPP[:, 0])
    for h in range(1, H):
        T_RIPB = T_RIPB + right_matmul(heads[h], Q_RHPP[:, h])
    return T_RIPB


def sparse_forward(A_RLDD: Tensor, B_RLDD: Tensor | None, gram_RPPB: Tensor, query_RPB: Tensor) -> Tensor:
    """Last entry of the query after a sparse stack, eq. (11). B has one layer less than A."""
    layers, D = A_RLDD.shape[1], A_RLDD.shape[-1]
    Gxx_RDDB, gyx_R1DB = gram_RPPB[:, :D, :D], gram_RPPB[:, D:, :D]
    x_RD1B, y_R11B = query_RPB[:, :D, None], query_RPB[:, D:, None]
    for layer in range(layers):
        row_R1DB = right_matmul(gyx_R1DB, A_RLDD[:, layer])
        y_R11B = matmul(row_R1DB, x_RD1B, y_R11B)
        if layer + 1 == layers:
            break
        gyx_R1DB = matmul(row_R1DB, Gxx_RDDB, gyx_R1DB)
        if B_RLDD is not None:
            move_RDDB = right_matmul(left_matmul(B_RLDD[:, layer], Gxx_RDDB), A_RLDD[:, layer])
            x_RD1B = matmul(move_RDDB, x_RD1B, x_RD1B)
            gyx_R1DB = matmul(gyx_R1DB, move_RDDB.transpose(1, 2), gyx_R1DB)
            if layer + 2 < layers:  # the last layer reads no x x^T
                Gxx_RDDB = matmul(move_RDDB, Gxx_RDDB, Gxx_RDDB)
                Gxx_RDDB = matmul(Gxx_RDDB, move_RDDB.transpose(1, 2), Gxx_RDDB)
    return y_R11B[:, 0, 0]


def sparse_expected_risk(
    A_RLDD: Tensor,
    B_RLDD: Tensor | None,
    S_REEB: Tensor,
    label_root_REK: Tensor,
    query_root_RED: Tensor,
    read_out: int = -1,
) -> Tensor:
    """Risk given each S with the task and the query integrated out: (R, B), tr(V K X K^T).

    At layer l a context token is x_l = M u, y_l = v^T K u, so with T = S M^T A M: K <- K (I + T), M <- M + B
    M T. The query's label moves by v^T (K - I) u from 0, which is the error v^T K u where the prediction is
    minus the label (Lemma 6), and v^T (K - 2 I) u where it is the label. Only the rows F^T K are carried,
    with V = F F^T the second moment of v; the query's second moment X closes the product. Roots that differ
    by prompt have the axis B, too.
    """
    E, layers = S_REEB.shape[1], A_RLDD.shape[1]
    A_RLEE, of_each = _pad(A_RLDD, E), len(label_root_REK.shape) == 4
    T_REEB = right_matmul(S_REEB, A_RLEE[:, 0])
    F_RKEB = label_root_REK.transpose(1, 2) if of_each else label_root_REK.mT[..., None]
    rows_RKEB = matmul(F_RKEB, T_REEB, F_RKEB) if of_each else F_RKEB + left_matmul(F_RKEB[..., 0], T_REEB)
    if B_RLDD is not None:
        B_RLEE = _pad(B_RLDD, E)
        M_REEB = torch.eye(E, dtype=T_REEB.dtype, device=T_REEB.device)[..., None] + left_matmul(
            B_RLEE[:, 0], T_REEB
        )
    for layer in range(1, layers):
        A_REE = A_RLEE[:, layer]
        if B_RLDD is None:
            rows_RKEB = rows_RKEB + right_matmul(matmul(rows_RKEB, S_REEB), A_REE)
            continue
        AM_REEB, Mt_REEB = left_matmul(A_REE, M_REEB), M_REEB.transpose(1, 2)
        if layer + 1 == layers:
            rows_RKEB = matmul(matmul(matmul(rows_RKEB, S_REEB), Mt_REEB), AM_REEB, rows_RKEB)
        else:
            T_REEB = matmul(S_REEB, matmul(Mt_REEB, AM_REEB))
            rows_RKEB = matmul(rows_RKEB, T_REEB, rows_RKEB)
            M_REEB = matmul(left_matmul(B_RLEE[:, layer], M_REEB), T_REEB, M_REEB)
    if read_out == 1:
        rows_RKEB = rows_RKEB - 2 * F_RKEB
    last_RKDB = matmul(rows_RKEB, query_root_RED) if of_each else right_matmul(rows_RKEB, query_root_RED)
    return squared_norm(last_RKDB)


def query_risk(out_RKB: Tensor, w_RDB: Tensor, query_root_RPK: Tensor, read_out: int) -> Tensor:
    """Return the risk, (R, B), of what a stack makes of the columns of the query's root."""
    target_RKB = query_root_RPK[:, : w_RDB.shape[1]].mT @ w_RDB
    return (read_out * out_RKB - target_RKB).square().sum(1)


def _pad(M_RLDD: Tensor, width: int) -> Tensor:
    extra = width - M_RLDD.shape[-1]
    return M_RLDD if extra == 0 else torch.nn.functional.pad(M_RLDD, (0, extra, 0, extra))
