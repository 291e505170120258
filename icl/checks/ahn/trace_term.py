"""Ahn et al. 2023, section 3, the second property of eq. (6): what makes its trace term significant."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq, fmpq_mat

from icl.checks.prompts import Prompts
from icl.checks.statement import Measured
from icl.theory.rationals import identity, rational, trace


@dataclass
class TraceTerm(Prompts):
    paper, where = "ahn", "Section 3, the second property of eq. (6)"
    title = "Section 3: the trace term and the variance of x"
    law = "x ~ N(0, Sigma), w ~ N(0, I), n examples, y = w.x"
    claim = (
        "The regularizer tr(Sigma)/n in eq. (6) becomes more significant when n is small and when the "
        "variance of x is high."
    )
    quote = (
        r'"$\frac{1}{n} \sum_k \lambda_k$ in (6) acts as a regularizer. It becomes more '
        r"significant when $n$ is small and variance of the "
        "$x^{(i)}$'s is high\" (Section 3)"
    )
    formula = r"\tfrac{\operatorname{tr}\Sigma}{n} \text{ beside } \tfrac{n+1}{n}\Sigma"

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        sigma, n = self.sigma, rational(self.context)
        now = share(sigma, n)
        about = "growth of the trace term, as a share of the other, where Sigma becomes 4 Sigma"
        m.positive("growth_with_variance", share(4 * sigma, n) / now - 1, about)
        shorter = now / share(sigma, 2 * n) - 1
        m.control("from 2 n tokens to n", shorter, of="growth_with_variance", wants="positive")
        m.note(
            "the first half is true; Sigma -> c Sigma scales both terms of eq. (6), and the risks with and "
            "without the trace term. More variance in one direction raises the share in the others"
        )


def share(sigma: fmpq_mat, n: fmpq) -> fmpq:
    """Return the trace term of eq. (6) over the other, by their traces."""
    return trace(trace(sigma) / n * identity(sigma.nrows())) / trace((n + 1) / n * sigma)
