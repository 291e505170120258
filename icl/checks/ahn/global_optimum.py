"""Ahn et al. 2023, section 4.3: the parameters at convergence "indeed appear to be globally optimal"."""

from dataclasses import dataclass
from random import Random

from flint import fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.equivariant_bound import equivariant_bound
from icl.theory.ahn.forward import positive
from icl.theory.ahn.two_layer_certificate import best_pair, certify, excess, pivots_of, sum_of_squares
from icl.theory.rationals import identity, trace
from icl.theory.wishart import best_polynomial, covariance_moments
from icl.theory.words import stack_slope


@dataclass
class GlobalOptimum(Statement):
    dim: int = setting(5, 2, 4, most=8, beyond="tensors of dim^4 rationals take minutes")
    context: int = setting(20, 1, 1000, most=10**5, beyond="the search for the squares loses its digits")
    layers: int = setting(2, 2, 3, most=3, beyond="the lower bound has long moments")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 4.3; Theorem 3"
    title = "Section 4.3: the best point of S as the global minimum"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x; whitened, so for every Sigma"
    claim = (
        "For w ~ N(0, Sigma^-1) the best point of S, the weights with every A_l a multiple of Sigma^-1, is a "
        "global minimum of the risk of eq. (8) over all A."
    )
    quote = (
        '"The parameters at convergence match the stationary point introduced in Theorem 3, and indeed '
        'appear to be globally optimal" (Section 4.3)'
    )
    formula = (
        r"\min_{A \in \mathcal{S}} f(A) = \min_{A_0, \ldots, A_{L-1}} f(A),\quad "
        r"\mathcal{S} = \{A_\ell = a_\ell \Sigma^{-1}\}"
    )
    tries = 3

    def expected(self) -> str:
        return "holds" if self.layers == 2 or self.context == 1 else "undecided"

    def measure(self, m: Measured) -> None:
        rng, d, n = Random(self.seed), self.dim, self.context
        moments = covariance_moments(d, n, 7)
        one, along = moments[1] / moments[2] * identity(d), positive(rng, d, d)
        about = "derivative of the risk of one layer, which is convex, at its optimum on S"
        m.zero("one_layer_slope", stack_slope([one], n, 0, along), about)
        m.control("a tenth beyond", stack_slope([one * fmpq(11, 10)], n, 0, along), of="one_layer_slope")
        least, c_1, c_2 = best_pair(d, n)
        found = certify(d, n, rng)
        about = "risk of two layers at random A less the least on S, minus the sum of squares"
        m.zero("identity", found.identity, about)
        A, B = (positive(rng, d, d) for _ in range(2))
        off = excess(A, B, n, least) - sum_of_squares(found.grams, A, B, fmpq(1001, 1000) * c_1, c_2)
        m.control("squares of products about a sum of scalars 1.001 times the best", off, of="identity")
        pivots = [x for G in found.grams for x in pivots_of(G)]
        risks = {L: best_polynomial(moments, L)[1] for L in range(2, self.layers + 1)}
        bounds = {L: equivariant_bound(d, n, L) for L in risks}
        least_of_all = bounds | ({2: least} if min(pivots) > 0 else {})
        about = "at every depth the least risk on S is a lower bound for every A"
        m.true("least_of_all", least_of_all == risks or None, about)
        G = found.grams[0]
        shifted = min(pivots_of(G - trace(G) / G.nrows() * identity(G.nrows())))
        about = "least pivot of a Gram matrix less its mean eigenvalue"
        m.control(about, shifted, of="least_of_all", wants="negative")
        m.note(
            "Two layers: the risk less the least on S is a mean of squares and sum G_mm' <m, m'> over "
            "products of A_0 and A_1 that vanish at the best point. Beyond, only the equivariant bound is "
            "known, which S attains at n = 1"
        )
