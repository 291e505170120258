"""Ahn et al. 2023, sections 3 and 4.2: what is said of the trace term of eq. (6), and where there is none."""

from dataclasses import dataclass

from flint import fmpq, fmpq_mat

from icl.checks.prompts import Prompts
from icl.checks.statement import Measured
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import identity, largest, rational, trace


@dataclass
class Shrinkage(Prompts):
    paper, where = "ahn", "Section 3, the second property of eq. (6); section 4.2, after Theorem 3"
    title = "Sections 3 and 4.2: shrinkage and robustness"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), for eq. (6) w ~ N(0, I), n examples, y = w.x"
    claim = (
        "The regularizer tr(Sigma)/n in eq. (6) becomes more significant when the variance of x is high. "
        "Where w ~ N(0, Sigma^-1) there is no trade-off with statistical robustness: the best layer of the "
        "set S is Sigma^-1, without shrinkage."
    )
    quote = (
        r'"$\frac{1}{n} \sum_k \lambda_k$ in (6) acts as a regularizer. It becomes more significant when $n$ '
        r'is small and variance of the $x^{(i)}$\'s is high" (Section 3); '
        r'"in contrast to Theorem 1, there is no trade-off with statistical robustness" (after '
        r"Theorem 3, Section 4.2)"
    )
    formula = r"L = 1:\quad \arg\min_a f(a \Sigma^{-1}) = 1,\quad w \sim \mathcal{N}(0, \Sigma^{-1})"
    task_covariance = "inverse"

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        sigma, d, n = self.sigma, self.dim, rational(self.context)
        now = share(sigma, n)
        about = "growth of the trace term, as a share of the other, where Sigma becomes 4 Sigma"
        m.positive("growth_with_variance", share(4 * sigma, n) / now - 1, about)
        shorter = now / share(sigma, 2 * n) - 1
        m.control("from 2 n tokens to n", shorter, of="growth_with_variance", wants="positive")
        layer = OneLayer(sigma, n, inverse := sigma.inv())
        best, _ = layer.step(inverse)
        m.zero("shrinkage", 1 - best, "difference of the best scalar a of A = a Sigma^-1 from 1")
        m.control("a shrinkage that does not depend on d, n / (n + 1)", best - n / (n + 1), of="shrinkage")
        m.number("best", best, "best scalar a of A = a Sigma^-1 at one layer")
        m.number("best_error", best - n / (n + d + 1), "difference of the best scalar from n / (n + d + 1)")
        off = largest(layer.label_form.solve(sigma * inverse) * sigma - best * identity(d))
        m.number("anisotropy", off, "largest entry of A Sigma - a I at the best matrix over all A")
        m.note("what is absent is a difference between directions: the best matrix is a multiple of Sigma^-1")
        m.note(
            "that the trace term is more significant when n is small is true; Sigma -> c Sigma scales both "
            "terms of eq. (6), and the risks with and without it. More variance in one direction raises the "
            "share in the others"
        )


def share(sigma: fmpq_mat, n: fmpq) -> fmpq:
    """Return the trace term of eq. (6) over the other, by their traces."""
    return trace(trace(sigma) / n * identity(sigma.nrows())) / trace((n + 1) / n * sigma)
