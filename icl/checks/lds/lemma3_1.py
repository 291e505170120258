"""lds, Lemma 3.1: s + 1 heads with one-hot positions turn y_1 .. y_T into AR(s) tokens.

Head h: W_Q = [0; I_T], W_K^T = [0, shift^(h-1)(I_T)], W_V puts y into column h; no 1/tau, mask or residual.
With a right shift head h copies y_{t+h-1} to position t, for every t: the rows below T - s are not zero, and
row T - s ends in y_T. Restricting W_Q to the positions that a token needs repairs both.
All products are by 0 and 1, all sums have one term that is not zero: float64 is exact here.

B sequences, T observations, H = s + 1 heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.lds.support.sequences import Windows
from icl.checks.numbers import finding, tried
from icl.checks.settings import fits_in_memory
from icl.checks.verdict import Control, Finding
from icl.random import generator

REMARKS = [
    "(21)'s R = diag(0, I) is no shift: it only erases the first column, and every head h >= 2 would copy "
    "y_t itself, but for y_1. A right shift has ones above the diagonal.",
    "With a shift, the printed heads give the first T - s rows if the input's y_T is set to 0; with y_T "
    "itself the query already holds the answer. The s rows below are not zero: they hold what is left of y.",
    "Lemma 3.1's zeros are T - s - 1 rows of s columns; there are s rows, of s + 1 columns. (22)'s W_V needs "
    "s + 1 columns, and a head's output ends in h - 1 rows of zeros, not h.",
    "What holds: the same heads with W_Q = [0; I] on the positions 1 .. T - s only (1 .. T - s - 1 in the "
    "last head) give exactly the matrix of the lemma, from y_1 .. y_T as they are.",
    "Heads h >= 2 read y_{t+h-1} at position t: the causal mask of section 3 forbids it, and the residual "
    "stream, the softmax and 1/tau have to go as well.",
]


Scores = Callable[[int, int, int], tuple[Tensor, Tensor]]  # W_Q and W_K^T of T, s and the head


@dataclass(eq=False)
class Lemma31(Windows):
    """Settings: window s, length T, sequences (`samples`), setting and dim they are drawn from, seed."""

    reference = "Lemma 3.1; Appendix C.1, eqs. (21) and (22)"
    claim = (
        "A linear attention layer of s + 1 heads with one-hot positions turns y_1 .. y_T into the AR(s) "
        "tokens (7), the query's last entry and all rows below being 0."
    )

    samples: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        fits_in_memory(self.samples, 1, self.length * (self.window + 1))

    def measure(self) -> Finding:
        y_BT = self.law.sequences([generator(self.seed, "check")], self.samples)[0]
        hidden_BT = torch.cat([y_BT[:, :-1], torch.zeros_like(y_BT[:, -1:])], 1)
        expected_BTH, rows = _lemma_matrix(y_BT, self.window), y_BT.shape[1] - self.window
        printed_BTH = _layer(hidden_BT, self.window, _shift)
        repaired_BTH = _layer(y_BT, self.window, _restricted)
        errors = {
            "repaired_error": _gap(repaired_BTH, expected_BTH),
            "printed_error": _gap(_layer(y_BT, self.window, _erase), expected_BTH),
            "shifted_error": _gap(_layer(y_BT, self.window, _shift), expected_BTH),
            "shifted_error_first_rows": _gap(printed_BTH[:, :rows], expected_BTH[:, :rows]),
            "shifted_error_rows_below": _gap(printed_BTH[:, rows:], expected_BTH[:, rows:]),
            "masked_error": _gap(_layer(y_BT, self.window, _restricted, causal=True), expected_BTH),
        }
        off = _off(repaired_BTH, expected_BTH) + _off(printed_BTH[:, :rows], expected_BTH[:, :rows])
        exact = "counted; float64 is exact: factors are 0 and 1, and of each sum one term is not zero"
        wrong = min(errors["printed_error"], errors["shifted_error"], errors["masked_error"])
        return finding(
            [tried(entries_off=off).at_most(0.5, exact), tried(**errors)],
            Control(
                "least error of the heads as printed, with a shift, and under a causal mask", wrong, wrong > 0
            ),
            remarks=REMARKS,
        )


def _lemma_matrix(y_BT: Tensor, window: int) -> Tensor:
    """The lemma's matrix: rows (y_t, ..., y_{t+s}) for t <= T - s, y_T replaced by 0, and zeros below."""
    tokens = y_BT.unfold(1, window + 1, 1).clone()
    tokens[:, -1, -1] = 0
    return torch.nn.functional.pad(tokens, (0, 0, 0, window))


def _layer(y_BT: Tensor, window: int, scores: Scores, causal: bool = False) -> Tensor:
    """sum_h S W_Q^h (W_K^h)^T S^T S W_V^h with S = [y, I]: (B, T, s + 1)."""
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
    """W_Q = [0; query] and W_K^T = [0, key]: the first coordinate, y itself, is not read."""
    return torch.nn.functional.pad(query_TT, (0, 0, 1, 0)), torch.nn.functional.pad(key_TT, (1, 0))


def _shift(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    eye_TT = torch.eye(T, dtype=torch.float64)
    return _projections(eye_TT, torch.diag(torch.ones(T - head, dtype=torch.float64), head))


def _erase(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    """(21) as printed, applied `head` times."""
    key_TT = torch.eye(T, dtype=torch.float64)
    key_TT[0, 0] = float(head == 0)
    return _projections(torch.eye(T, dtype=torch.float64), key_TT)


def _restricted(T: int, window: int, head: int) -> tuple[Tensor, Tensor]:
    """Positions 1 .. T - s, in the last head 1 .. T - s - 1: y_T is never read."""
    query_XT, key_TX = _shift(T, window, head)
    query_XT[T - window - (head == window) + 1 :] = 0
    return query_XT, key_TX


def _off(found: Tensor, expected: Tensor) -> int:
    """How many entries are not equal."""
    return int((found != expected).sum())


def _gap(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())
