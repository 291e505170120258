"""Ahn et al. 2023, Lemmas 5 and 6: the trace form of the loss; what else changes no label."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.forward import Layer, covariates, forward, positive, query_label, sparse, tokens
from icl.theory.rationals import diagonal, largest, rational


@dataclass
class Lemma5(Statement):
    dim: int = setting(5, 1, 6, most=32, beyond="the rationals of three layers take minutes")
    context: int = setting(20, 1, 20, most=1000, beyond="the rationals of three layers take minutes")
    layers: int = setting(3, 1, 3, most=4, beyond="the digits of a token triple with each layer")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Lemmas 5 and 6, eqs. (5), (11) and (57); section 2; footnote 4"
    title = "Lemmas 5 and 6: the trace form of the loss"
    law = "any prompt: n examples, y = w.x, in rationals; P and Q drawn"
    claim = (
        "Under eq. (11) the population risk is E Tr((I - M) Y_L^T Y_L (I - M)), where Y_L is the last row "
        "of Z_L if the query starts with its own label instead of 0."
    )
    quote = (
        '"Then the loss in (5) has the equivalent form [...]" (Lemma 5, Appendix C.2); "The scaling factor '
        '$1/n$ [...] does not influence the expressive power" (Section 2); "Note that the objective '
        'function does not depend on $B_2$" (Section 5.1, footnote 4)'
    )
    formula = (
        r"f = \mathbb{E} \operatorname{tr}\left((I - M) Y_L^\top Y_L (I - M)\right)"
        r"\quad\text{with the query begun at its own label}"
    )

    def measure(self, m: Measured) -> None:
        rng, d = Random(self.seed), self.dim
        Z, label = tokens(rng, d, self.context)
        A, B = ([positive(rng, d, d) for _ in range(self.layers)] for _ in range(2))
        printed = [sparse(*layer) for layer in zip(A, B, strict=True)]
        full = [(positive(rng, d + 1, d + 1), positive(rng, d + 1, d + 1)) for _ in range(self.layers)]
        outside = [(P, Q * diagonal([1] * d + [0])) for P, Q in full]
        begun = fmpq_mat(Z)
        begun[d, self.context] = label
        m.zero("form_error", form_error(Z, begun, printed), "squared error minus its trace form at eq. (11)")
        m.control("P and Q with a last column of Q", form_error(Z, begun, full), of="form_error")
        about = "changes by a query that begins at its label: of x, of context labels, of its own less itself"
        m.zero("lemma6", lemma6(Z, begun, printed), about)
        m.control("that of its own", lemma6(Z, begun, printed)[-1] + label, of="lemma6")
        errors = [form_error(Z, begun, outside), *lemma6(Z, begun, outside)]
        m.zero("max_error_outside_11", errors, "the same four at any P and Q with a zero last column of Q")
        m.control("with that column", max(map(abs, lemma6(Z, begun, full))), of="max_error_outside_11")

        now, other = query_label(Z, A, B), positive(rng, d, d)
        about = "change of the query's label by another last B"
        m.zero("largest_change", query_label(Z, A, [*B[:-1], B[-1] + other]) - now, about)
        if self.layers > 1:
            earlier = query_label(Z, A, [*B[:-2], B[-2] + other, B[-1]])
            m.control("another B before the last", earlier - now, of="largest_change")
        n = rational(self.context)
        scaled = forward(Z, [(P / n, Q) for P, Q in full], fmpq(1))[-1]
        about = "stack with the factor 1/n at P and Q minus that without it at P/n and Q, largest entry"
        m.zero("difference", largest(forward(Z, full)[-1] - scaled), about)
        if n > 1:
            kept = forward(Z, full, fmpq(1))[-1]
            m.control("P kept", largest(kept - scaled), of="difference")


def form_error(Z: fmpq_mat, begun: fmpq_mat, layers: Sequence[Layer]) -> fmpq:
    """Return the squared error minus its trace form, in which the query begins at its label."""
    at = Z.nrows() - 1, Z.ncols() - 1
    plain, moved = (forward(start, layers)[-1][at] for start in (Z, begun))
    return (plain + begun[at]) ** 2 - moved**2


def lemma6(Z: fmpq_mat, begun: fmpq_mat, layers: Sequence[Layer]) -> tuple[fmpq, fmpq, fmpq]:
    """Return what the query's label changes: covariates, context labels, and its own entry, less itself."""
    change = forward(begun, layers)[-1] - forward(Z, layers)[-1]
    d, n = Z.nrows() - 1, Z.ncols() - 1
    return largest(covariates(change)), max(abs(change[d, j]) for j in range(n)), change[d, n] - begun[d, n]
