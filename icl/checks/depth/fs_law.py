"""Own: the flow of depth's Result 4, solved at every depth."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.fs_solution import FsSolution
from icl.checks.depth.settings import Exponent
from icl.checks.statement import Measured, setting
from icl.theory.depth.matrices import fixed_residual
from icl.theory.depth.power_law import slope


@dataclass
class FsLaw(FsSolution, Exponent):
    layers: int = setting(4, 2, 50)

    where, title, origin = "own, on Section 3.2, Result 4", "The flow on fixed covariances, corrected", "icl"
    law = f"{FsSolution.law}; the exponent of {Exponent.law}"
    claim = (
        "1 - gamma lambda / L = (1 + (2 - 2 / L) omega lambda^3 t)^(-1 / (2L - 2)) solves Result 4's flow, "
        "at L = infinity gamma = ln(1 + 2 omega lambda^3 t) / (2 lambda), and the loss falls like "
        "t^(-nu beta / (nu beta + 2 nu + 1))."
    )
    quote = ""
    formula = r"\gamma_k = \ln(1 + 2 \omega_k \lambda_k^3 t) / 2 \lambda_k"

    def expected(self) -> str:
        return "holds"

    def measure(self, m: Measured) -> None:
        for name, L in (("residual", 0), ("at_depth", self.layers)):
            factor = 2 - fmpq(2, L) if L else fmpq(2)
            about = f"gamma' over the right side, less 1, at depth {L or 'infinity'}"
            m.zero(name, fixed_residual(*self.at, factor, L), about)
            m.control("the same with twice the factor", fixed_residual(*self.at, 2 * factor, L), of=name)
        nu, beta = self.exponents
        found, claimed = slope(lambda t: self.power.fixed(2 * t)), nu * beta / (nu * beta + 2 * nu + 1)
        about = "slope of log loss between t = 1e400 and 1e600, plus the exponent"
        m.zero("exponent", found + claimed, about)
        m.control("the same of beta / (2 + beta)", found + beta / (2 + beta), of="exponent")
