"""depth, Result 4: what is printed as the solution of the flow at infinite depth."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured, Statement, setting
from icl.theory.depth.matrices import fixed_residual
from icl.theory.rationals import rational


@dataclass
class FsSolution(Statement):
    eigenvalue: float = setting(0.5, 0.1, 4.0)
    task: float = setting(1.0, 0.1, 4.0)
    time: float = setting(3.0, 0.0, 50.0)

    paper, where, title = "depth", "Section 3.2, Result 4", "The flow on fixed covariances, as printed"
    law = "x ~ N(0, Sigma), beta ~ N(0, Omega), codiagonal, eigenvalues lambda and omega; P, L = infinity"
    claim = (
        "gamma = ln(1 + 4 omega lambda^3 t) / (2 lambda) solves gamma' = omega lambda^2 exp(-2 lambda gamma)."
    )
    quote = (
        r'"In the large depth limit $L \to \infty$ these dynamics have solution '
        r'$\gamma_k(t) = \frac{1}{2 \lambda_k} \ln(1+ 4 \omega_k \lambda_k^3 t )$" (Result 4)'
    )
    formula = r"\gamma_k(t) = \frac{1}{2 \lambda_k} \ln(1 + 4 \omega_k \lambda_k^3 t)"

    def expected(self) -> str:
        return "fails"

    @property
    def at(self) -> tuple[fmpq, fmpq, fmpq]:
        return rational(self.eigenvalue), rational(self.task), rational(self.time)

    def measure(self, m: Measured) -> None:
        about = "gamma' over omega lambda^2 exp(-2 lambda gamma), less 1"
        m.zero("residual", fixed_residual(*self.at, fmpq(4)), about)
        m.control("the same with the factor 1, as in Appendix D's loss", fixed_residual(*self.at, fmpq(1)))
        m.note("It solves the flow of Appendix D, twice as fast as that of Result 4.")
