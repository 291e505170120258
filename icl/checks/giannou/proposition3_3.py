"""giannou, Proposition 3.3: the regularised logistic loss is self-concordant where |a_i| <= 1."""

from dataclasses import dataclass
from random import Random

from flint import arb, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.giannou.balls import greatest
from icl.theory.giannou.concordance import drawn, is_largest, ratio, squared_supremum, worst
from icl.theory.giannou.perturbation import condition_gaps, inverse_share
from icl.theory.giannou.perturbation import drawn as drawn_errors
from icl.theory.rationals import identity, rational

PROBLEMS = 8
MOST_DIM = 6  # of drawn Hessians: their spectra are roots of polynomials


@dataclass
class Proposition3_3(Statement):
    mu: float = setting(0.1, 1e-9, 1e6)
    dim: int = setting(3, 1, 6, most=200, beyond="nothing new is to be seen")  # of drawn problems
    context: int = setting(6, 1, 12, most=1000, beyond="nothing new is to be seen")
    seed: int = setting(0, 0, 1000)

    paper, where = "giannou", "Proposition 3.3, Definition 3.1; Corollary E.2, Lemma E.3, (E.5)"
    title = "The logistic loss is self-concordant; its Hessian with errors"
    law = "any points with |a_i| <= 1, labels +-1, x and u, |u| = 1; phi(t) = f(x + t u)"
    claim = (
        "For |a_i| <= 1 the regularised logistic loss f is self-concordant with M_f = 1/sqrt(mu), and "
        "f/(4 mu) is standard self-concordant. For |E| < mu, |(Hess f + E)^-1 - (Hess f)^-1| <= |E| / (mu "
        "(mu - |E|)), and for symmetric E the condition number of Hess f + E lies within (E.5)."
    )
    quote = (
        r'"For $\mu > 0$, the regularized logistic loss $f(\cdot)$ defined in (3.5) is self-concordant with '
        r'$M_f = 1/\sqrt{\mu}$ under assumption 3.2" (Proposition 3.3, Section 3.2.2)'
    )
    formula = r"|\varphi'''(0)| \le 2 M_f\, \varphi''(0)^{3/2},\quad M_f = \tfrac{1}{\sqrt{\mu}}"

    def measure(self, m: Measured) -> None:
        mu, dim = rational(self.mu), min(self.dim, MOST_DIM)
        q, squared = worst(mu), squared_supremum(mu)
        supremum, standard = arb(squared).sqrt(), 1 / arb(mu).sqrt()
        about = "supremum of |phi'''| / phi''^(3/2) over points and directions"
        m.below("supremum", supremum, standard, about)
        unit, at = fmpq_mat([[1]]), (2 * (1 - 4 * arb(q)).sqrt().atanh()).mid().fmpq()
        attained = ratio(unit, [1], mu, at * unit, unit)
        m.control("the ratio at a point less .99 of it", attained - 99 * supremum / 100, of="supremum")
        m.true("largest", is_largest(squared, mu), "no p (1 - p) has a larger ratio, and one has it")
        problems = drawn(PROBLEMS, self.context, self.dim, Random(self.seed))
        found = greatest(ratio(A, y, mu, x, u) for A, y, x, u in problems)
        m.below("largest_found", found, supremum, "largest ratio at random problems, from f itself")
        pairs = list(drawn_errors(PROBLEMS, self.context, dim, mu, Random(self.seed)))
        symmetric = [(H, (E + E.transpose()) / 2) for H, E in pairs]
        apart = [(H, E) for H, E in symmetric if dim == 1 or H * E != E * H]  # others may meet a bound
        inverse = greatest(inverse_share(H, E, mu) for H, E in (*pairs, *apart))
        m.below("inverse", inverse, 1, "largest ratio of |(H + E)^-1 - H^-1| to its bound")
        least = mu * identity(dim)
        sharp = inverse_share(least, -least / 2, mu)
        m.control("the ratio to half of the bound at H = mu I, less 1", 2 * sharp - 1, of="inverse")
        if dim > 1:
            least_gap = -greatest(-gap for H, E in apart for gap in condition_gaps(H, E))
            m.positive("condition", least_gap, "least distance of a condition number from its bounds (E.5)")
        m.note(
            "The second claim, M = 1/(2 sqrt(mu)), is twice as strong as the first. Neither is sharp: the "
            "supremum is 2 / (3 sqrt(3 mu) (1 + 4 mu)), so f / (27 mu (1 + 4 mu)^2) is standard "
            "self-concordant, and damped Newton on it takes longer steps than on f / (4 mu)."
        )
        m.note(
            "Weyl's inequalities (Lemma E.3) take symmetric errors, which E_1 = A^T diag(u_1) A + A^T U_2 is "
            "not. Corollary E.2 needs no symmetry; (E.5) holds for singular values with -|E| and |E|. "
            "Appendix E.4 writes grad f for the Hessian."
        )
