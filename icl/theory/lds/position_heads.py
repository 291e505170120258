"""Attention heads with one-hot positions, which make the AR(s) tokens of Lemma 3.1."""

from collections.abc import Callable, Sequence
from typing import Any

from flint import fmpq, fmpq_mat

Scores = Callable[[int, int, int], tuple[fmpq_mat, fmpq_mat]]  # W_Q and W_K^T of T, s and the head, from 0


def matrix_of_lemma(y: Sequence[fmpq], window: int) -> fmpq_mat:
    """Return the rows (y_t, .., y_{t+s}) for t <= T - s, y_T replaced by 0, and zeros below."""
    T = len(y)
    out = fmpq_mat(T, window + 1)
    for t in range(T - window):
        for h in range(window + 1):
            out[t, h] = y[t + h] if t + h < T - 1 else 0
    return out


def layer(y: Sequence[fmpq], window: int, scores: Scores, causal: bool = False) -> fmpq_mat:
    """Return sum_h S W_Q^h (W_K^h)^T S^T S W_V^h with S = [y, I]: T rows of s + 1."""
    T = len(y)
    S = fmpq_mat(T, T + 1)
    for t, observed in enumerate(y):
        S[t, 0], S[t, t + 1] = observed, 1
    out = fmpq_mat(T, window + 1)
    for head in range(window + 1):
        query, key = scores(T, window, head)
        attention: Any = S * query * key * S.transpose()
        value = fmpq_mat(T + 1, window + 1)
        value[0, head] = 1
        if causal:
            for t in range(T):
                for u in range(t + 1, T):
                    attention[t, u] = 0
        out += attention * (S * value)
    return out


def shift(T: int, window: int, head: int) -> tuple[fmpq_mat, fmpq_mat]:
    """Return the scores of a right shift by `head`: W_Q = [0; I], ones of W_K^T above the diagonal."""
    query, key = fmpq_mat(T + 1, T), fmpq_mat(T, T + 1)
    for t in range(T):
        query[t + 1, t] = 1
        if t + head < T:
            key[t, t + head + 1] = 1
    return query, key


def erase(T: int, window: int, head: int) -> tuple[fmpq_mat, fmpq_mat]:
    """Return the scores of (21) as printed: R erases the first column, `head` times."""
    query, key = shift(T, window, 0)
    if head:
        key[0, 1] = 0
    return query, key


def restricted(T: int, window: int, head: int) -> tuple[fmpq_mat, fmpq_mat]:
    """Return the scores on positions 1 .. T - s, in the last head 1 .. T - s - 1: y_T is never read."""
    query, key = shift(T, window, head)
    for t in range(T - window - (head == window), T):
        query[t + 1, t] = 0
    return query, key
