"""lds, Lemma 3.1: s + 1 heads with one-hot positions turn y_1 .. y_T into AR(s) tokens.

Head h: W_Q = [0; I_T], W_K^T = [0, shift^(h-1)(I_T)], W_V puts y into column h; no 1/tau, mask or residual.
With a right shift head h copies y_{t+h-1} to position t, for every t: the rows below T - s are not zero, and
row T - s ends in y_T. Restricting W_Q to the positions that a token needs repairs both.
All products are by 0 and 1, all sums have one term that is not zero: float64 is exact here.

B sequences, T observations, H = s + 1 heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks.lds.support import position_heads as heads
from icl.checks.lds.support.sequences import Windows
from icl.checks.numbers import finding, tried
from icl.checks.settings import fits_in_memory
from icl.checks.verdict import Control, Finding
from icl.random import generator

REMARKS = [
    "R = diag(0, I) in (21) is not a shift. It only erases the first column, so every head h >= 2 would "
    "copy y_t itself, except y_1. A right shift has ones above the diagonal.",
    "With a shift, the printed heads give the first T - s rows if y_T is set to 0 in the input; otherwise "
    "the query already contains the answer. The s rows below are not zero: they contain the rest of y.",
    "Lemma 3.1 states T - s - 1 rows of zeros with s columns; the matrix has s rows with s + 1 columns. "
    "W_V in (22) needs s + 1 columns, and the output of head h ends in h - 1 rows of zeros, not h.",
    "The repaired statement is true: the same heads with W_Q = [0; I] on the positions 1 .. T - s only (1 "
    ".. T - s - 1 in the last head) give exactly the matrix of the lemma from y_1 .. y_T.",
    "Heads h >= 2 read y_{t+h-1} at position t, which the causal mask of section 3 forbids. The residual "
    "stream, the softmax and 1/tau must be omitted as well.",
]

MEANINGS = {
    "repaired_error": "largest difference of the repaired heads' output from the matrix of the lemma",
    "printed_error": "largest difference of the printed heads' output from the matrix of the lemma",
    "shifted_error": "largest difference of the output with a shift in place of R from the matrix of the "
    "lemma",
    "shifted_error_first_rows": "largest difference in the first T - s rows, with a shift and y_T set to 0",
    "shifted_error_rows_below": "largest difference in the rows below, with a shift and y_T set to 0",
    "masked_error": "largest difference of the repaired heads' output under a causal mask",
}


@dataclass(eq=False)
class Lemma31(Windows):
    """Settings: window s, length T, sequences (`samples`), setting and dim they are drawn from, seed."""

    reference = "Lemma 3.1; Appendix C.1, eqs. (21) and (22)"
    claim = (
        "One layer of linear attention with s + 1 heads and one-hot positions maps y_1 .. y_T to the AR(s) "
        "tokens (7); the last entry of the query and all rows below it are 0."
    )

    samples: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        fits_in_memory(self.samples, 1, self.length * (self.window + 1))

    def measure(self) -> Finding:
        y_BT = self.law.sequences([generator(self.seed, "check")], self.samples)[0]
        hidden_BT = torch.cat([y_BT[:, :-1], torch.zeros_like(y_BT[:, -1:])], 1)
        expected_BTH, rows = heads.matrix_of_lemma(y_BT, self.window), y_BT.shape[1] - self.window
        printed_BTH = heads.layer(hidden_BT, self.window, heads.shift)
        repaired_BTH = heads.layer(y_BT, self.window, heads.restricted)
        errors = {
            "repaired_error": heads.largest_gap(repaired_BTH, expected_BTH),
            "printed_error": heads.largest_gap(heads.layer(y_BT, self.window, heads.erase), expected_BTH),
            "shifted_error": heads.largest_gap(heads.layer(y_BT, self.window, heads.shift), expected_BTH),
            "shifted_error_first_rows": heads.largest_gap(printed_BTH[:, :rows], expected_BTH[:, :rows]),
            "shifted_error_rows_below": heads.largest_gap(printed_BTH[:, rows:], expected_BTH[:, rows:]),
            "masked_error": heads.largest_gap(
                heads.layer(y_BT, self.window, heads.restricted, causal=True), expected_BTH
            ),
        }
        off = heads.entries_off(repaired_BTH, expected_BTH) + heads.entries_off(
            printed_BTH[:, :rows], expected_BTH[:, :rows]
        )
        exact = (
            "a count; float64 is exact here, because factors are 0 and 1 and each sum has one nonzero term"
        )
        wrong = min(errors["printed_error"], errors["shifted_error"], errors["masked_error"])
        return finding(
            [
                tried(entries_off=off)
                .means(
                    "number of entries in which the repaired heads, and the first rows of the shifted "
                    "ones, are wrong"
                )
                .at_most(0.5, exact),
                tried(**errors).means(**MEANINGS),
            ],
            Control(
                "the least error of the heads as printed, with a shift, and under a causal mask",
                wrong,
                wrong > 0,
            ),
            remarks=REMARKS,
        )
