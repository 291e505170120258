"""Attention heads with one-hot positions, which make the AR(s) tokens of Lemma 3.1.

B sequences, T observations, H = s + 1 heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Scores = Callable[[int, int, int], tuple[Tensor, Tensor]]  # W_Q and W_K^T of T, s and the head


def matrix_of_lemma(y_BT: Tensor, window: int) -> Tensor:
    """Return the lemma's matrix: rows (y_t, ..., y_{t+s}) for t <= T - s, y_T replaced by 0, and zeros
    below."""
    tokens = y_BT.unfold(1, window + 1, 1).clone()
    tokens[:, -1, -1] = 0
    return torch.nn.functional.pad(tokens, (0, 0, 0, window))


def layer(y_BT: Tensor, window: int, scores: Scores, causal: bool = False) -> Tensor:
    """Return sum_h S W_Q^h (W_K^h)^T S^T S W_V^h with S = [y, I]: (B, T, s + 1)."""
    B, T = y_BT.shape
    one_hot_TT = torch.eye(T, dtype=torch.float64)
    S_BTX = torch.cat([y_BT[..., None], one_hot_TT.expand(B, T, T)], -1)
    out_BTH = torch.zeros(B, T, window + 1, dtype=torch.float64)
    for head in range(window + 1):
        query_XT, key_TX = scores(T, window, head)
        W_V_XH = torch.zeros(T + 1, window + 1, dtype=torch.float64)
        W_V_XH[0, head] = 1
        attention_BTT = S_BTX @ query_XT @ key_TX @ S_BTX.mT
        out_BTH += (attention_BTT.tril() if causal else attention_BTT) @ (S_BTX @ W_V_XH)
    return out_BTH


def _projections(query_TT: Tensor, key_TT: Tensor) -> tuple[Tensor, Tensor]:
    """Return W_Q = [0; query] and W_K^T = [0, key]: the first coordinate, y itself, is not read."""
    return torch.nn.functional.pad(query_TT, (0, 0, 1, 0)), torch.nn.functional.pad(key_TT, (1, 0))


def shift(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    """Return the scores of a right shift by `head`."""
    eye_TT = torch.eye(T, dtype=torch.float64)
    return _projections(eye_TT, torch.diag(torch.ones(T - head, dtype=torch.float64), head))


def erase(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    """Return the scores of (21) as printed, applied `head` times."""
    key_TT = torch.eye(T, dtype=torch.float64)
    key_TT[0, 0] = float(head == 0)
    return _projections(torch.eye(T, dtype=torch.float64), key_TT)


def restricted(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    """Return the scores on positions 1 .. T - s, in the last head 1 .. T - s - 1: y_T is never read."""
    query_XT, key_TX = shift(T, window, head)
    query_XT[T - window - (head == window) + 1 :] = 0
    return query_XT, key_TX


def entries_off(found: Tensor, expected: Tensor) -> int:
    """Count the entries that are not equal."""
    return int((found != expected).sum())


def largest_gap(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference of two entries."""
    return float((found - expected).abs().max())
