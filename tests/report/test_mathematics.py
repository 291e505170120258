"""Formulas typed in plain text become MathML; names, commands and words do not."""

import re

import pytest

from icl.report.mathematics import formulas


def shown(text: str) -> str:
    """Return the text of what is shown, with <...> around a formula and [...] around code."""
    html = re.sub(r"<math[^>]*>(.*?)</math>", r"⟨\1⟩", str(formulas(text)).replace("&#39;", "'"))
    html = re.sub(r"<code>(.*?)</code>", r"[\1]", html)
    return re.sub(r"<(?!sup|/sup)[^>]*>", "", html)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("every A_l a multiple of Sigma^-1.", "every ⟨Aℓ⟩ a multiple of ⟨Σ−1⟩."),
        ("2 |w*|^2 / (d C + 2)", "2 |⟨w⋆⟩|<sup>2</sup> / (d C + 2)"),
        ("y_q = <v, x_q> + b", "⟨yq⟩ = &lt;v, ⟨xq⟩&gt; + b"),
        ("R~_i must read X_(l+1)^T, not y_T", "⟨R~i⟩ must read ⟨Xℓ+1⊤⟩, not ⟨yT⟩"),
        ("Sigma's root Sigma^1/2, lambda_max(A) <= 2^-52", "⟨Σ⟩'s root ⟨Σ1/2⟩, ⟨λmax⟩(A) ≤ ⟨2−52⟩"),
        ("-2e-13 and 3.5e+42, not 0x1e3", "−2 × 10<sup>−13</sup> and 3.5 × 10<sup>42</sup>, not 0x1e3"),
        ("(I - X_0 A)^{k^t} <= 1", "(I - ⟨X0⟩ A)<sup>k^t</sup> ≤ 1"),
    ],
)
def test_simple_formulas_are_typeset(typed: str, expected: str) -> None:
    assert shown(typed) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("gradient_norm is exact", "[gradient_norm] is exact"),
        ("icl figure figure=one/fig2 scale=paper.", "icl figure [figure=one/fig2] [scale=paper]."),
        ("see `icl check x_0`", "see [icl check x_0]"),
        ("a Sigma.npy of mine, alphabet, one/appendixE_1", "a Sigma.npy of mine, alphabet, one/appendixE_1"),
        ("5 * 3 and a - b, I say", "5 * 3 and a - b, I say"),
        ("<script>x_0</script>", "&lt;script&gt;⟨x0⟩&lt;/script&gt;"),
    ],
)
def test_names_commands_and_words_are_not(typed: str, expected: str) -> None:
    assert shown(typed) == expected


def test_a_formula_keeps_what_was_typed_as_its_alternative() -> None:
    assert 'alttext="Sigma^-1"' in formulas("at Sigma^-1")
