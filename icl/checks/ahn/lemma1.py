"""Ahn et al. 2023, Lemma 1: the forward pass of eq. (8) is preconditioned gradient descent on the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.forward import covariates, forward, mean_label, positive, second_moment, sparse, tokens
from icl.theory.rationals import column, largest, unit


@dataclass
class Lemma1(Statement):
    dim: int = setting(5, 1, 8, most=64, beyond="the rationals of all tokens take minutes")
    context: int = setting(20, 1, 40, most=1000, beyond="the rationals of all tokens take minutes")
    layers: int = setting(4, 1, 6, most=16, beyond="each layer adds digits to all labels")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Lemma 1, eqs. (8) and (9); section 4.2, before Theorem 3"
    title = "Lemma 1: the forward pass as preconditioned gradient descent"
    law = "any prompt: n examples, y = w.x, in rationals; A_l drawn, not symmetric"
    claim = (
        "The forward pass of L layers of eq. (8) is L steps of preconditioned gradient descent on the least "
        "squares of the prompt, layer l with preconditioner A_l^T. On a prompt with n >= d a layer with A = "
        "n (X X^T)^-1 is a step of Newton's method and predicts <w*, x_q> exactly."
    )
    quote = (
        '"a forward-pass of a $L$-layer transformer, with the parameter configuration (8) is the same as '
        r'taking $L$ steps of gradient descent, preconditioned by $A_\ell$" (before Lemma 1, Section 4)'
    )
    formula = (
        r"w_{\ell+1} = w_\ell - A_\ell^\top \nabla R_{w^\star}(w_\ell),\quad "
        r"R_{w^\star}(w) = \tfrac{1}{2n} \sum_{i \le n} \langle w - w^\star, x_i \rangle^2"
    )

    def measure(self, m: Measured) -> None:
        rng, d, labels = Random(self.seed), self.dim, []
        Z, label = tokens(rng, d, self.context)
        corner = unit(0, d - 1, d)  # so that no A is symmetric
        A = [(positive(rng, d, d) + corner) / d for _ in range(self.layers)]
        for state in forward(Z, [sparse(-step) for step in A]):
            labels.append(column(state[d, j] for j in range(self.context + 1)))
        right = [step.transpose() for step in A]
        longer = [fmpq(11, 10) * right[0], *right[1:]]

        def error(steps: Sequence[fmpq_mat]) -> fmpq:
            return largest(*(x - y for x, y in zip(labels, descent(Z, steps), strict=True)))

        about = "largest difference of a label, after any layer, from descent by A_l^T"
        m.zero("max_error", error(right), about)
        m.control("descent whose first step is a tenth longer", error(longer), of="max_error")
        if d > 1:
            m.control("descent by A_l instead of A_l^T", error(A), of="max_error")
        if self.context >= d:
            inverse = second_moment(Z).inv()
            about = "error of the prediction at A = S^-1, S = X X^T / n: a Newton step"
            steps = [-forward(Z, [sparse(-s * inverse)])[0][d, self.context] - label for s in (1, 2)]
            m.zero("newton_error", steps[0], about)
            m.control("2 S^-1, the step of the Hessian (1/2n) X X^T as printed", steps[1], of="newton_error")
            m.note("the Hessian of R is X X^T / n; a trained A is one for all prompts: Sigma^-1 is its limit")
        m.number("max_error_with_A", error(A) / largest(*labels), "the same by A_l, over the largest label")
        m.note("eq. (8) as printed descends by A_l^T; at all solutions in the paper A_l is symmetric")
        m.note("the proof divides by n twice, and its last entry is y - <w, x>; eq. (9) is correct")


def descent(Z: fmpq_mat, steps: Sequence[fmpq_mat]) -> list[fmpq_mat]:
    """Return after each step of w <- w - T grad R(w) from w = 0 what is left of every label, y - <w, x>."""
    d, x = Z.nrows() - 1, covariates(Z).transpose()
    labels, w, rows = column(Z[d, j] for j in range(Z.ncols())), fmpq_mat(d, 1), []
    for T in steps:
        w -= T * (second_moment(Z) * w - mean_label(Z))
        rows.append(labels - x * w)
    return rows
