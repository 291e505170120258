"""Ahn et al. 2023, section 4.2: on a fixed prompt a layer can take a Newton step."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.errors import InputError
from icl.theory.ahn.forward import forward, second_moment, sparse, tokens


@dataclass
class Newton(Statement):
    dim: int = setting(5, 1, 8, most=64, beyond="the rationals of an inverse take minutes")
    context: int = setting(20, 1, 40, most=1000, beyond="the rationals of an inverse take minutes")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 4.2, before Theorem 3"
    title = "Section 4.2: Newton's method on a fixed prompt"
    law = "any prompt: n >= d examples, y = w*.x, in rationals"
    claim = (
        "On any fixed prompt with n >= d, a layer of eq. (8) with A = n (X X^T)^-1 takes a Newton step on "
        "the least squares: it predicts <w*, x_q> exactly."
    )
    quote = (
        r'"For any fixed prompt, Newton'
        r"'s method corresponds to $A_i \propto (XX^\top)^{-1}$, which makes the problem well-conditioned "
        r'even if $\Sigma$ is very degenerate" (Section 4.2)'
    )
    formula = r"A = n (X X^\top)^{-1}:\quad w_1 = w^\star"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context < self.dim:
            least = f"must be at least check.dim={self.dim}, else X X^T has no inverse"
            raise InputError(f"check.context={self.context}: {least}")

    def measure(self, m: Measured) -> None:
        Z, label = tokens(Random(self.seed), self.dim, self.context)
        inverse = second_moment(Z).inv()
        m.zero("error", error(Z, inverse, label), "error of the prediction at A = S^-1, S = X X^T / n")
        twice = error(Z, 2 * inverse, label)
        m.control("2 S^-1, the step of the Hessian (1/2n) X X^T as printed", twice, of="error")
        m.note("the Hessian of R is (1/n) X X^T; a trained A is one for all prompts: Sigma^-1 is its limit")


def error(Z: fmpq_mat, A: fmpq_mat, label: fmpq) -> fmpq:
    """Return the query's label after a layer of eq. (8), which is minus the prediction, and the label."""
    return forward(Z, [sparse(-A)])[-1][Z.nrows() - 1, Z.ncols() - 1] + label
