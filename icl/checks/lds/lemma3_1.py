"""lds, Lemma 3.1: s + 1 heads with one-hot positions turn y_1 .. y_T into AR(s) tokens.

Head h: W_Q = [0; I_T], W_K^T = [0, shift^(h-1)(I_T)], W_V puts y into column h; no 1/tau, mask or residual.
"""

from dataclasses import dataclass
from random import Random

from flint import fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.errors import whole
from icl.theory.lds.position_heads import erase, layer, matrix_of_lemma, restricted, shift
from icl.theory.rationals import largest


@dataclass
class Lemma31(Statement):
    """Window s, length T; the seed draws y."""

    window: int = setting(3, 1, 5, most=198, beyond="no length that is decided has more")
    length: int = setting(30, 3, 20, most=200, beyond="the layers' products take minutes")
    seed: int = setting(0, 0, 1000)

    paper, where = "lds", "Lemma 3.1; Appendix C.1, eqs. (21) and (22)"
    title = "Lemma 3.1: one layer builds the AR(s) tokens"
    law = "any y_1 .. y_T"
    claim = (
        "One layer of linear attention with s + 1 heads and one-hot positions maps y_1 .. y_T to the AR(s) "
        "tokens (7); the last entry of the query and all rows below it are 0."
    )
    quote = (
        r'"For a given $s \geq 1$, there exists an $s + 1$-headed linear attention layer with positional '
        r"encoding which transforms input sequences $[y_1, y_2, \dots, y_T]^\top$ into [tokens that are] "
        'essentially equivalent to tokens (7)" (Lemma 3.1, Section 3)'
    )
    formula = (
        r"\text{LSA}_{s+1 \text{ heads}}(y_1, \ldots, y_T) = \begin{bmatrix} y_1 & \cdots & y_{T-s} \\ "
        r"\vdots & & \vdots \\ y_{s+1} & \cdots & 0 \end{bmatrix}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.length", self.length, self.window + 2)

    def measure(self, m: Measured) -> None:
        rng, s = Random(self.seed), self.window
        y = [fmpq(rng.randint(1, 9)) for _ in range(self.length)]
        tokens, hidden = matrix_of_lemma(y, s), layer([*y[:-1], fmpq(0)], s, shift)
        above = [abs(hidden[t, h] - tokens[t, h]) for t in range(self.length - s) for h in range(s + 1)]
        off = "largest difference from the matrix of the lemma of"
        repaired = largest(layer(y, s, restricted) - tokens)
        m.zero("repaired_error", repaired, f"{off} the repaired heads' output")
        for name, found in (
            ("as printed", layer(y, s, erase)),
            ("with a shift in place of R", layer(y, s, shift)),
            ("under a causal mask", layer(y, s, restricted, causal=True)),
        ):
            m.control(f"the same of the heads {name}", largest(found - tokens), of="repaired_error")
        about = f"{off} shifting heads, first T - s rows, y_T set to 0"
        m.zero("shifted_error_first_rows", max(above), about)
        m.note(
            "R = diag(0, I) in (21) is no shift: it erases the first column. With a right shift the printed "
            "heads give the first T - s rows if y_T is set to 0 in the input; the rows below hold the rest "
            "of y. Heads on positions 1 .. T - s only (1 .. T - s - 1 in the last) give the lemma's matrix."
        )
        m.note("Heads h >= 2 read y_(t+h-1) at position t, which the causal mask of section 3 forbids.")
