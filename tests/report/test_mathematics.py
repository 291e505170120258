"""Formulas typed in plain text are typeset; names, commands and words are not."""

import pytest

from icl.report.mathematics import formulas


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("every A_l a multiple of Sigma^-1.", "every A<sub>l</sub> a multiple of Σ<sup>−1</sup>."),
        ("y_q = <v, x_q> + b", "y<sub>q</sub> = &lt;v, x<sub>q</sub>&gt; + b"),
        ("R~_i, X_(l+1)^T, y_T", "R~<sub>i</sub>, X<sub>l+1</sub><sup>⊤</sup>, y<sub>T</sub>"),
        ("Sigma^1/2, lambda_max(A) <= 2^-52", "Σ<sup>1/2</sup>, λ<sub>max</sub>(A) ≤ 2<sup>−52</sup>"),
        ("-2e-13 and 3.5e+42, not 0x1e3", "−2 × 10<sup>−13</sup> and 3.5 × 10<sup>42</sup>, not 0x1e3"),
        ("(I - X_0 A)^{k^t} <= 1", "(I - X<sub>0</sub> A)<sup>k^t</sup> ≤ 1"),
        ("gradient_norm is exact", "<code>gradient_norm</code> is exact"),
        ("figure=one/fig2 scale=paper.", "<code>figure=one/fig2</code> <code>scale=paper</code>."),
        ("see `icl check x_0`", "see <code>icl check x_0</code>"),
        ("a Sigma.npy, alphabet, one/appendixE_1", "a Sigma.npy, alphabet, one/appendixE_1"),
        ("5 * 3 and a - b, I say", "5 * 3 and a - b, I say"),
        ("<script>x_0</script>", "&lt;script&gt;x<sub>0</sub>&lt;/script&gt;"),
    ],
)
def test_simple_formulas_are_typeset(typed: str, expected: str) -> None:
    assert formulas(typed) == expected
