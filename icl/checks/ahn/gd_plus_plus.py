"""Ahn et al. 2023, section 5: at Sigma = I the points of S are GD++ (von Oswald et al. 2023)."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.forward import forward, mean_label, second_moment, sparse, tokens
from icl.theory.rationals import diagonal, identity, largest, matrix


@dataclass
class GdPlusPlus(Statement):
    dim: int = setting(5, 1, 6, most=32, beyond="the rationals of three layers take minutes")
    context: int = setting(20, 1, 20, most=1000, beyond="the rationals of three layers take minutes")
    layers: int = setting(3, 1, 3, most=4, beyond="the digits of a token triple with each layer")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 5, after Theorem 4; eq. (11)"
    title = "Eq. (11): GD++ as a special case"
    law = "any prompt: n examples, y = w.x, in rationals; a_l and b_l drawn"
    claim = (
        "At Sigma = I the layers of eq. (11) with A_l = -a_l I and B_l = b_l I are the GD++ algorithm of von "
        "Oswald et al. (2023), up to step sizes."
    )
    quote = (
        r'"When the $\Sigma = I$, the algorithm implemented by $A_i \propto I, b_i \propto I$ is exactly the '
        'GD++ algorithm proposed in (von Oswald et al., 2023) (up to stepsize)" (Section 5)'
    )
    formula = (
        r"A_\ell = -a_\ell I,\ B_\ell = b_\ell I:\quad X_{\ell+1} = "
        r"\left(I - \tfrac{a_\ell b_\ell}{n} X_\ell X_\ell^\top\right) X_\ell"
    )

    def measure(self, m: Measured) -> None:
        rng, d = Random(self.seed), self.dim
        Z, _ = tokens(rng, d, self.context)
        a, b = ([fmpq(rng.randint(20, 80), 100) for _ in range(self.layers)] for _ in range(2))
        one = identity(d)
        layers = [sparse(-s * one, t * one) for s, t in zip(a, b, strict=True)]
        right = gd_plus_plus(Z, a, [s * t for s, t in zip(a, b, strict=True)])
        found, about = forward(Z, layers), "largest difference of an entry of a token after a layer from GD++"
        m.zero("max_error", apart(found, right), about)
        wrong = apart(found, gd_plus_plus(Z, a, b))
        m.control("the step b_l of the covariates instead of a_l b_l", wrong, of="max_error")
        other = diagonal([4 if i % 2 == 0 else 1 for i in range(d)])
        turned = [sparse(-s * other, t * one) for s, t in zip(a, b, strict=True)]
        m.control("another Sigma", apart(forward(Z, turned), right), of="max_error")
        m.note("the step of the covariates is a_l b_l: b_l is the ratio of the two step sizes of GD++")


def gd_plus_plus(Z: fmpq_mat, eta: Sequence[fmpq], gamma: Sequence[fmpq]) -> list[fmpq_mat]:
    """Return the tokens after each step: every label takes a step of descent on the least squares of the
    context, and the covariates one against their second moment."""
    d, states = Z.nrows() - 1, []
    for step, shrink in zip(eta, gamma, strict=True):
        kept = identity(d) - shrink * second_moment(Z)
        move = [[*row, 0] for row in kept.tolist()] + [[*(-step * mean_label(Z)).entries(), 1]]
        Z = matrix(move) * Z
        states.append(Z)
    return states


def apart(one: Sequence[fmpq_mat], other: Sequence[fmpq_mat]) -> fmpq:
    return max(largest(x - z) for x, z in zip(one, other, strict=True))
